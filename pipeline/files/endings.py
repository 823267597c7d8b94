"""The format of inputs by flags and file name endings, and outputs whose endings promise another format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path, PurePath

from twinsieve.pipeline.files import FORMATS
from twinsieve.pipeline.files.format import Format, format_named, formats
from twinsieve.pipeline.files.source import STDIN
from twinsieve.pipeline.files.unpack import PACKED_ENDINGS
from twinsieve.pipeline.files.write import STDOUT
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import UsageError, is_address, shown

_OTHER_ENDINGS = {
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
"""Formats that no command reads or writes, by file name ending; used in error texts."""
_NO_ENDING = "has no ending that says what it holds"
_OTHER_INPUTS = dict.fromkeys(
    (".xlsx", ".xls", ".ods"), "is a spreadsheet by its name; save it as CSV in UTF-8 first"
)
_OF_REPORTS = (".jsonl", ".ndjson", ".json", ".txt", ".text")
"""Endings that a file of JSON lines may have; .txt because JSON lines are also plain lines."""


@cache
def _by_ending() -> dict[str, type[Format]]:
    return {ending: kind for kind in formats() for ending in kind.endings}


def format_of(
    names: list[str], given: str | None, options: Mapping[str, str | None], settings: Settings
) -> Format:
    """The format of all inputs, with its options.

    The format is `given`; otherwise the one that an option implies; otherwise text if the settings have
    `input.encoding: text`; otherwise it follows from the file name endings. Standard input, pipes and devices
    have no ending, so they hold JSON lines unless a flag or setting names another format. A missing file is
    reported later, when it is opened.

    names: of the inputs
    given: value of --format, one of FORMATS, or None
    options: values of the flags of formats by name of the flag; None for one that was not given
    raises: UsageError if endings of inputs differ or are unknown, or if flags contradict the format
    """
    set_ = {flag: value for flag, value in options.items() if value is not None}
    kind = format_named(given) if given is not None else _kind_of(names, set_, settings)
    for flag in set_:
        if flag not in kind.flags:
            takers = [each.title for each in formats() if flag in each.flags]
            raise UsageError(
                f"--{flag.replace('_', '-')}: is for {_listed(takers)}, but the format is {kind.name}"
            )
    packed = [name for name in names if _packing_of(name)]
    if packed and not kind.packs:
        raise UsageError(f"{shown(packed[0])}: {kind.title} files are not read compressed; unpack it first")
    return kind.for_inputs(names, **set_)


def _kind_of(names: list[str], options: Mapping[str, str], settings: Settings) -> type[Format]:
    for kind in formats():
        if kind.implied_by in options:
            return kind
    if settings.input.encoding not in ("json", "text"):
        raise UsageError(
            f"input.encoding: {settings.input.encoding} is for Kafka; files with its values are not "
            "read: write them as Parquet or JSON lines, and set input.encoding: json"
        )
    if settings.input.encoding == "text":
        return next(kind for kind in formats() if kind.messages == "text")
    name_by_kind = {_kind_by_name(name): name for name in names}
    for kind in name_by_kind:
        if all(other.name in (kind.name, *kind.includes) for other in name_by_kind):
            return kind
    (kind, first), (other, second) = list(name_by_kind.items())[:2]
    raise UsageError(
        f"{shown(first)} looks like {kind.name}, {shown(second)} like {other.name}; run them one after the "
        "other on one --state, which finds duplicates across them, or add --format if a name misleads"
    )


def _kind_by_name(name: str) -> type[Format]:
    kind = _by_ending().get(ending_of(name)) if name != STDIN else None
    is_file = is_address(name) or (Path(name).is_file() and not PurePath(name).is_relative_to("/dev"))
    if kind is None and name != STDIN and is_file:
        endings = ", ".join(_by_ending())
        raise UsageError(
            f"{shown(name)}: {_OTHER_INPUTS.get(ending_of(name), _NO_ENDING)}; known endings are {endings}, "
            f"each also with {_listed(PACKED_ENDINGS)} behind it; or add --format {_listed(tuple(FORMATS))}"
        )
    return kind or formats()[0]


def has_known_ending(name: str) -> bool:
    """Whether a file of this name can be read without --format."""
    return ending_of(name) in _by_ending()


def known_endings() -> str:
    """All known file name endings, as text for a message."""
    return f"{', '.join(_by_ending())}, or one of them with {_listed(PACKED_ENDINGS)} behind it"


def refuse_empty_names(inputs: list[str]) -> None:
    """Refuse an input whose name is the empty string. raises: UsageError"""
    if "" in inputs:
        raise UsageError("an input's name is empty; name a file, or `-` for stdin")


def refuse_output_ending(name: str, format_: Format, *, given: bool = False) -> None:
    """Refuse an output whose file name ending belongs to another format than its rows have.

    given: the user named the format by a flag or setting; then an ending of another format that packs is
        assumed to be intended, and is accepted
    raises: UsageError
    """
    packing = _packing_of(name)
    if packing and not format_.packs:
        raise UsageError(f"-o {shown(name)}: {format_.title} compresses inside; name it without {packing}")
    kind = _by_ending().get(ending_of(name))
    looks = _promised(name)
    fits = looks is None
    if kind is not None:
        fits |= kind.name in (format_.name, *format_.includes) or format_.name in kind.includes
        fits |= given and kind.packs and format_.packs
    if not fits:
        raise UsageError(
            f"-o {shown(name)}: looks like {looks}, but rows come out as they came in, as {format_.name}; "
            f"name another file{'' if given else ', or name their format with --format'}"
        )


def refuse_other_endings(holds: str, endings: tuple[str, ...], names: Mapping[str, str | None]) -> None:
    """Refuse output files whose name endings belong to another format than what is written into them.

    holds: the content in words, for the error text
    endings: the ones that are accepted, beside those that stand for no format
    names: name of the file for each flag, None if the flag was not used
    raises: UsageError
    """
    for flag, name in names.items():
        looks = None if name is None else _promised(name)
        if name is not None and looks is not None and ending_of(name) not in endings:
            problem = f"looks like {looks}, but holds {holds}; name another file"
            raise UsageError(f"{flag} {shown(name)}: {problem}")


def refuse_packed_endings(names: Mapping[str, str | None]) -> None:
    """Refuse output files that are never compressed, but whose names end like compressed ones.

    names: name of the file for each flag, None if the flag was not used
    raises: UsageError
    """
    for flag, name in names.items():
        if name is not None and (packing := _packing_of(name)):
            raise UsageError(f"{flag} {shown(name)}: is not written compressed; leave {packing} out")


def refuse_endings_of_reports(names: Mapping[str, str | None]) -> None:
    """Refuse reports whose name endings belong to a format other than JSON lines. raises: UsageError"""
    refuse_other_endings("JSON lines", _OF_REPORTS, names)


def _promised(name: str) -> str | None:
    """What the ending of an output's name stands for, None for an unknown ending or stdout."""
    if name == STDOUT:
        return None
    kind = _by_ending().get(ending_of(name))
    return kind.name if kind is not None else _OTHER_ENDINGS.get(ending_of(name))


def ending_of(name: str) -> str:
    """The file name ending in lower case, without the ending of a compression: `.csv` for `a.CSV.gz`."""
    path = PurePath(shown(name))
    return (PurePath(path.stem).suffix if _packing_of(name) else path.suffix).lower()


def _packing_of(name: str) -> str:
    """The ending of a compression as it stands in the name, "" without one."""
    suffix = PurePath(shown(name)).suffix
    return suffix if suffix.lower() in PACKED_ENDINGS else ""


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
