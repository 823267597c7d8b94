"""Expands folders and patterns given as inputs into files, sorted by name; derives names of outputs."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from twinsieve.pipeline.files.address import path_of_local
from twinsieve.pipeline.files.endings import has_known_ending, known_endings
from twinsieve.pipeline.files.source import STDIN, is_stream
from twinsieve.pipeline.files.write import STDOUT
from twinsieve.stages.errors import UsageError, is_address, shown

_MAGIC = re.compile(r"[*?[]")


class Expanded(NamedTuple):
    """The inputs after folders and patterns were expanded into files.

    names: names of all inputs
    bases: for each input the folder that its output name is relative to: the named folder; the folder of a
        named file; for a pattern, its part before the first folder with a wildcard
    lines: for each folder and pattern a line for the user with its number of files
    """

    names: list[str]
    bases: list[str]
    lines: list[str]


def is_folder(output: str) -> bool:
    """Whether an output is a folder, which gets one file for each input.

    >>> is_folder("-"), is_folder("no/such/folder/"), is_folder("no/such/file")
    (False, True, False)
    """
    return output != STDOUT and (output.endswith("/") or os.path.isdir(output))


def outputs_in(folder: str, inputs: Expanded) -> list[str]:
    """For each input the name of its output: the folder, followed by the input's path relative to its base.

    folder: the output folder; inputs: with the base of each
    raises: UsageError for an input without a name (a stream), and for two inputs with the same output
    """
    input_by_output: dict[str, str] = {}
    for name, base in zip(inputs.names, inputs.bases, strict=True):
        if is_stream(name) or name == STDIN:
            stream = "stdin" if name == STDIN else name
            raise UsageError(f"-o {folder}: is a folder, and {stream} names no file in it; name a file")
        if is_address(name):
            last = shown(name).rstrip("/").rpartition("/")[2]
        else:
            last = os.path.relpath(name, base or ".")
        output = os.path.join(folder, last)
        if output in input_by_output:
            both = f"{shown(input_by_output[output])} and {shown(name)} would both be {output}"
            raise UsageError(f"-o {folder}: {both}; name the folder that holds them, or run them apart")
        input_by_output[output] = name
    return list(input_by_output)


def expand(given: list[str], outputs: Iterable[str | None]) -> Expanded:
    """The names of all inputs, with their base folders and lines for the user.

    A folder stands for all files below it with a known ending, a pattern (`*`, `?`, `[`, `**`) for all files
    that it matches. Hidden files and outputs are left out. A name that exists is never read as a pattern.

    given: the inputs as the user gave them
    outputs: names of files and folders that the run writes, None for one that was not given; if an output is
        a folder, files below it are left out too
    raises: UsageError for a folder or pattern without files
    """
    written = {os.path.realpath(name) for name in outputs if name is not None}
    names: list[str] = []
    bases: list[str] = []
    lines: list[str] = []
    for name in map(path_of_local, given):
        if is_address(name):
            names.append(name)
            bases.append("")
            continue
        if name != STDIN and os.path.isdir(name):
            base = name
            paths = [path for path in _below(name) if has_known_ending(path)]
            nothing = f"{name}: is a folder without a file that ends in {known_endings()}"
        elif name != STDIN and glob.has_magic(name) and not os.path.lexists(name):
            base = os.path.dirname(_MAGIC.split(name, maxsplit=1)[0])
            paths = [path for path in glob.glob(name, recursive=True) if os.path.isfile(path)]
            nothing = f"{name}: matches no file"
        else:
            names.append(name)
            bases.append(os.path.dirname(name))
            continue
        # If an output folder contains this input folder, its files are still inputs, so ignore that output.
        here = os.path.join(os.path.realpath(base or "."), "")
        others = {folder for folder in written if not here.startswith(os.path.join(folder, ""))}
        paths = sorted(
            (path for path in paths if not _is_written(path, others)), key=lambda path: path.split(os.sep)
        )
        if not paths:
            raise UsageError(nothing)
        names += paths
        bases += [base] * len(paths)
        lines.append(f"{name}: {len(paths):,} {'file' if len(paths) == 1 else 'files'}")
    return Expanded(names, bases, lines)


def _below(folder: str) -> Iterable[str]:
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = os.path.join(where, name)
            if not name.startswith(".") and os.path.isfile(path):
                yield path


def _is_written(path: str, written: set[str]) -> bool:
    real = os.path.realpath(path)
    return any(real == output or real.startswith(output + os.sep) for output in written)
