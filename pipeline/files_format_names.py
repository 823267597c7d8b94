"""What can be said of a file on the command line; `--help` needs it and loads nothing else for it."""

from __future__ import annotations

FORMATS = ("jsonl", "json", "csv", "tsv", "text", "parquet", "arrow")
"""What can be said with --format; tsv is CSV with tabs."""
