"""Reading and writing files: names, addresses, compression, encodings, rows and the messages in them, and
outputs that get their name only when they are complete."""

from __future__ import annotations

from twinsieve.stages.errors import SieveError

FORMATS = ("jsonl", "json", "csv", "tsv", "text", "parquet", "arrow")
"""Choices of --format; tsv is CSV with tabs. Defined here so that `--help` needs no larger module."""


class FileError(SieveError):
    """A file or stream cannot be read or written; the text names it and says what happened to the output."""


class MissingFileError(FileError):
    """An input does not exist. Exits with code 2, like other usage errors."""

    exit_code = 2


class SignalledError(FileError):
    """A signal ended the run.

    number: the signal's number; the exit code is 128 + number, as shells expect
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + number
