"""Folders and patterns as inputs: the files they stand for, in the order of their names."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from twinsieve.pipeline.files.address import path_of_local
from twinsieve.pipeline.files.format import has_known_ending, known_endings
from twinsieve.pipeline.files.source import STDIN, is_stream
from twinsieve.pipeline.files.write import STDOUT
from twinsieve.stages.errors import UsageError, is_address, shown

_MAGIC = re.compile(r"[*?[]")


class Expanded(NamedTuple):
    """What the names of inputs stand for.

    names: of all inputs; bases: of each the folder that was named, that of a file, or that of a pattern up to
        its first sign
    lines: one for each folder and pattern: how many files it stands for
    """

    names: list[str]
    bases: list[str]
    lines: list[str]


def is_folder(output: str) -> bool:
    """Whether an output is a folder, with a file in it for each input.

    >>> is_folder("-"), is_folder("no/such/folder/"), is_folder("no/such/file")
    (False, True, False)
    """
    return output != STDOUT and (output.endswith("/") or os.path.isdir(output))


def outputs_in(folder: str, inputs: Expanded) -> list[str]:
    """For each input the name of its output, which stands in the folder as the input does in its base.

    raises: UsageError for inputs without a name of their own, and for two that would have one output
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
    """The names of all inputs, what they are relative to, and lines about them.

    A folder stands for all files below it with a known ending, a pattern (`*`, `?`, `[`, `**`) for all files
    it matches; hidden ones and outputs are left out. The name of a file that exists is not a pattern.
    outputs: as given, None for none; files below one are left out too
    raises: UsageError for one that stands for nothing
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
        # An output folder that holds the inputs is not itself among them.
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
    return any(
        real == output or real.startswith((output + os.sep, output + ".leaders" + os.sep))
        for output in written
    )
