"""Folders and patterns as inputs: the files they stand for, in the order of their names."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from twinsieve.pipeline.files.address import path_of_local
from twinsieve.pipeline.files.format import has_known_ending, known_endings
from twinsieve.pipeline.files.source import STDIN
from twinsieve.stages.errors import UsageError, is_address


def expand(given: list[str], outputs: Iterable[str | None]) -> tuple[list[str], list[str]]:
    """The names of all inputs, and a line for each folder and pattern that says how many files it stood for.

    A folder stands for all files below it with a known ending, a pattern (`*`, `?`, `[`, `**`) for all files
    it matches; hidden ones, and those that are outputs, are left out. A name that is there is no pattern.
    outputs: as given, None for none; what lies below one is left out too
    raises: UsageError for one that stands for nothing
    """
    written = {os.path.realpath(name) for name in outputs if name is not None}
    names: list[str] = []
    said: list[str] = []
    for name in map(path_of_local, given):
        if is_address(name):
            names.append(name)
            continue
        if name != STDIN and os.path.isdir(name):
            found = [path for path in _below(name) if has_known_ending(path)]
            nothing = f"{name}: is a folder without a file that ends in {known_endings()}"
        elif name != STDIN and glob.has_magic(name) and not os.path.lexists(name):
            found = [path for path in glob.glob(name, recursive=True) if os.path.isfile(path)]
            nothing = f"{name}: matches no file"
        else:
            names.append(name)
            continue
        found = sorted(
            (path for path in found if not _is_written(path, written)), key=lambda path: path.split(os.sep)
        )
        if not found:
            raise UsageError(nothing)
        names += found
        said.append(f"{name}: {len(found):,} {'file' if len(found) == 1 else 'files'}")
    return names, said


def _below(folder: str) -> Iterable[str]:
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = os.path.join(where, name)
            if not name.startswith(".") and os.path.isfile(path):
                yield path


def _is_written(path: str, written: set[str]) -> bool:
    real = os.path.realpath(path)
    return any(real == one or real.startswith((one + os.sep, one + ".leaders" + os.sep)) for one in written)
