"""The processes of `run` and `seed`: their roles, the loops that run them, HTTP pages and metrics."""
