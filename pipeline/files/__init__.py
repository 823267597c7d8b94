"""Files: names, addresses, packed and encoded bytes, rows, their messages, and outputs that appear whole."""

from __future__ import annotations

from twinsieve.stages.errors import SieveError

FORMATS = ("jsonl", "json", "csv", "tsv", "text", "parquet", "arrow")
"""What can be said with --format; tsv is CSV with tabs. `--help` needs this and loads nothing else."""


class FileError(SieveError):
    """A file or stream cannot be read or written; the text names it, and what happened to the output."""
