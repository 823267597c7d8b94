"""Reading and writing files: names, addresses, compression, encodings, rows and the messages in them, and
outputs that get their name only when they are complete."""

from __future__ import annotations

import os
import shlex

from twinsieve.stages.errors import SieveError

FORMATS = {
    "jsonl": "json_lines.JsonLines",
    "json": "json_documents.JsonDocuments",
    "csv": "csv.Csv",
    "tsv": "csv.Tsv",
    "text": "plain_text.PlainText",
    "parquet": "parquet.Parquet",
    "arrow": "arrow.Arrow",
}
"""Choices of --format, each with its module in `files/formats` and its class, which `format.format_named`
imports. Only names are here, so that `--help` needs no larger module. Names without ending have the first."""

QUOTES = ("none", "double")
"""Choices of --quote."""

ESCAPES = ("backslash",)
"""Choices of --escape."""


class FileError(SieveError):
    """A file or stream cannot be read or written; the text names it and says what happened to the output."""


def refused_output(shown: str, error: OSError, folder: str) -> FileError:
    """The error for an output that cannot be opened or made.

    shown: its name; folder: the folder that has to be there already
    """
    cause = error.strerror
    if isinstance(error, FileNotFoundError) and folder and not os.path.lexists(folder):
        cause = f"there is no folder {folder}; make it: mkdir -p {shlex.quote(folder)}"
    return FileError(f"{shown}: cannot be written: {cause}")


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
