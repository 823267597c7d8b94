"""Reading and writing files: names, addresses, compression, encodings, rows and the messages in them, and
outputs that get their name only when they are complete."""

from __future__ import annotations

import os
import shlex

from twinsieve.stages.errors import SieveError

FORMATS = ("jsonl", "json", "csv", "tsv", "text", "parquet", "arrow")
"""Choices of --format; tsv is CSV with tabs. Defined here so that `--help` needs no larger module."""


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
