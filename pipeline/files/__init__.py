"""Files: names, addresses, packed and encoded bytes, rows, their messages, and outputs that appear whole."""

from __future__ import annotations

from twinsieve.stages.errors import SieveError

FORMATS = ("jsonl", "json", "csv", "tsv", "text", "parquet", "arrow")
"""Choices of --format; tsv is CSV with tabs. `--help` needs this and loads nothing else."""


class FileError(SieveError):
    """A file or stream cannot be read or written; the text names it, and what happened to the output."""


class MissingFileError(FileError):
    """An input does not exist: a usage error, like a setting or a column that does not exist."""

    exit_code = 2


class SignalledError(FileError):
    """A signal ended the run. number: its number, which shells expect in the exit code"""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + number
