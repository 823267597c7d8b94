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
_OTHER_ENDINGS = {
    ".parquet": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".avro": "Avro",
    ".orc": "ORC",
    ".xlsx": "a spreadsheet",
    ".xls": "a spreadsheet",
    ".ods": "a spreadsheet",
    ".zip": "a zip archive",
    ".7z": "a 7z archive",
    ".rar": "a rar archive",
    ".tar": "a tar archive",
    ".tgz": "a tar archive",
    ".lzma": "lzma",
    ".lz4": "lz4",
    ".br": "brotli",
    ".db": "a database",
    ".sqlite": "a database",
    ".pickle": "a pickle",
    ".pkl": "a pickle",
    ".npy": "an array",
    ".npz": "an array",
    ".xml": "XML",
    ".html": "HTML",
    ".yaml": "YAML",
    ".yml": "YAML",
}
"""What a name promises and no command writes."""
_LINES_OF_JSON: tuple[Format, ...] = ("jsonl", "text")
"""Formats whose names fit JSON lines: these are plain lines too."""
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


def refuse_empty_names(inputs: list[str]) -> None:
    """Do nothing if every input has a name. raises: UsageError"""
    if "" in inputs:
        raise UsageError("an input's name is empty; name a file, or `-` for stdin")


def refuse_output_ending(name: str, format_: Format, *, given: bool = False) -> None:
    """Do nothing if kept rows of this format may stand in a file of this name.

    given: somebody said what the rows are, so that the ending of another format of rows may be meant
    raises: UsageError
    """
    looks = _promised(name)
    if looks in _OTHER_ENDINGS.values() or (looks not in (None, format_) and not given):
        raise UsageError(
            f"-o {name}: looks like {looks}, but rows come out as they came in, as {format_}; "
            f"name another file{'' if given else ', or say with --format what the rows are'}"
        )


def refuse_other_endings(holds: str, allowed: tuple[Format, ...], names: dict[str, str | None]) -> None:
    """Do nothing if files of these names may hold what is written into them.

    holds: what that is, in words; allowed: formats whose endings fit; names: flag → name or None
    raises: UsageError
    """
    for flag, name in names.items():
        looks = _promised(name) if name is not None else None
        if looks is not None and looks not in allowed:
            raise UsageError(f"{flag} {name}: looks like {looks}, but holds {holds}; name another file")


def refuse_endings_of_reports(names: dict[str, str | None]) -> None:
    """Do nothing if files of these names may hold JSON lines. raises: UsageError"""
    refuse_other_endings("JSON lines", _LINES_OF_JSON, names)


def _promised(name: str) -> str | None:
    """What the ending of an output's name says, None where it says nothing."""
    if name == STDOUT:
        return None
    path = PurePath(name)
    inner = PurePath(path.stem).suffix if path.suffix.lower() in PACKED_ENDINGS else path.suffix
    return _by_ending(name) or _OTHER_ENDINGS.get(inner.lower())


def _input_format(name: str) -> Format:
    found = _by_ending(name) if name != STDIN else None
    if found is None and name != STDIN and Path(name).is_file() and not PurePath(name).is_relative_to("/dev"):
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
