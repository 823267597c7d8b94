"""What a run dropped, read from its `--duplicates` file: one row of it, or all of it counted."""
