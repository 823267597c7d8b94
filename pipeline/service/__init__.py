"""`run` and `seed` as processes: roles, loops, pages, metrics."""
