"""What a file holds, by its name: JSON lines, CSV or plain lines."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Literal

from twinsieve.pipeline.files_read import STDIN
from twinsieve.pipeline.files_unpack import PACKED_ENDINGS
from twinsieve.pipeline.files_write import STDOUT
from twinsieve.pipeline.settings import Settings
from twinsieve.stages.errors import UsageError

Format = Literal["jsonl", "csv", "text"]

_ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".txt": "text",
    ".text": "text",
}
_NOT_WRITTEN = frozenset(
    {".zip", ".xlsx", ".xls", ".ods", ".lz4", ".7z", ".rar", ".tar", ".tgz", ".br", ".lzma", ".avro", ".orc"}
)
"""Endings of outputs that would say what no output is."""
_FORMATS: dict[str, Format] = {"jsonl": "jsonl", "csv": "csv", "text": "text"}


def format_of(names: list[str], given: str | None, settings: Settings) -> Format:
    """The one format of all inputs: the given one, `input.encoding: text`, or by ending.

    Standard input, pipes and devices have no ending to go by; they hold JSON lines unless something else is
    said. A file that is not there is left to whoever opens it.
    raises: UsageError where endings differ, or a file has none that is known
    """
    if given is not None:
        return _FORMATS[given]
    if settings.input.encoding == "text":
        return "text"
    found = {_input_format(name): name for name in names}
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise UsageError(f"{first} looks like {one}, {second} like {other}; say which with --format")
    return next(iter(found))


def refuse_names(inputs: list[str], output: str) -> None:
    """Nothing, if the names can be those of inputs and of an output. raises: UsageError"""
    if "" in inputs:
        raise UsageError("an input's name is empty; name a file, or `-` for stdin")
    if not output:
        raise UsageError("-o: the name is empty; name a file, or `-` for stdout")
    ending = PurePath(output).suffix.lower()
    if ending in _NOT_WRITTEN:
        packed = _listed(PACKED_ENDINGS)
        raise UsageError(
            f"-o {output}: outputs are packed as {packed} and not as {ending}; name another file"
        )


def refuse_output_ending(name: str, format_: Format) -> None:
    """Nothing, if kept rows of this format may stand in a file of this name. raises: UsageError"""
    looks = _by_ending(name) if name != STDOUT else None
    if looks not in (None, format_):
        raise UsageError(
            f"-o {name}: looks like {looks}, but rows come out as they came in, as {format_}; "
            f"name another file, or say with --format what the rows are"
        )


def _input_format(name: str) -> Format:
    found = _by_ending(name) if name != STDIN else None
    if found is None and Path(name).is_file() and not PurePath(name).is_relative_to("/dev"):
        known = ", ".join(_ENDINGS)
        raise UsageError(
            f"{name}: has no ending that says what it holds; known are {known}, each also with "
            f"{_listed(PACKED_ENDINGS)} behind it; or say --format jsonl, csv or text"
        )
    return found or "jsonl"


def _by_ending(name: str) -> Format | None:
    path = PurePath(name)
    suffix = PurePath(path.stem).suffix if path.suffix in PACKED_ENDINGS else path.suffix
    return _ENDINGS.get(suffix.lower())


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
