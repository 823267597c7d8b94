"""The format of a file by its name: JSON lines, JSON documents, CSV, plain lines, Parquet or Arrow."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Literal, NamedTuple, cast

from twinsieve.pipeline.files import FORMATS
from twinsieve.pipeline.files.encoding import encoding_named
from twinsieve.pipeline.files.source import STDIN
from twinsieve.pipeline.files.unpack import PACKED_ENDINGS
from twinsieve.pipeline.files.write import STDOUT
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import UsageError, is_address, shown

Format = Literal["jsonl", "json", "csv", "text", "parquet", "arrow"]

TABLES: tuple[Format, ...] = ("parquet", "arrow")
"""Binary formats that store columns, not lines."""


class Dialect(NamedTuple):
    """A format with its delimiter and encoding.

    delimiter: the ASCII character between the columns of CSV
    encoding: name of a Python codec; None: UTF-8, and it is an error if the first bytes show another encoding
    """

    format: Format
    delimiter: str = ","
    encoding: str | None = None


_ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "text",
    ".text": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
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
_LINES_OF_JSON = ("jsonl", "json", "text")
"""Formats whose endings a file of JSON lines may have; text because JSON lines are also plain lines."""
_BY_TAB = ".tsv"
_NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t"}


def dialect_of(
    names: list[str], given: str | None, settings: Settings, delimiter: str | None, encoding: str | None
) -> Dialect:
    """The dialect of all inputs.

    The format is `given`; otherwise text if the settings have `input.encoding: text`; otherwise it follows
    from the file name endings. Standard input, pipes and devices have no ending, so they hold JSON lines
    unless a flag or setting names another format. A missing file is reported later, when it is opened.

    names: of the inputs
    given: value of --format, one of FORMATS, or None
    delimiter, encoding: values of the flags, or None; a delimiter implies CSV
    raises: UsageError if endings of inputs differ or are unknown, or if flags contradict the format
    """
    format_ = _format_of(names, given or ("csv" if delimiter is not None else None), settings)
    codec = encoding_named(encoding) if encoding is not None else None
    if format_ in TABLES and codec is not None:
        raise UsageError(f"--encoding: is for text, but the format is {format_}")
    packed = [name for name in names if PurePath(shown(name)).suffix.lower() in PACKED_ENDINGS]
    if format_ in TABLES and packed:
        raise UsageError(
            f"{shown(packed[0])}: a Parquet or Arrow file is not read compressed; unpack it first"
        )
    if delimiter is not None:
        if format_ != "csv":
            raise UsageError(f"--delimiter: is for CSV, but the format is {format_}")
        return Dialect(format_, _delimiter(delimiter), codec)
    if given == "tsv" or (format_ == "csv" and _is_by_tab(names)):
        return Dialect(format_, "\t", codec)
    return Dialect(format_, encoding=codec)


def _format_of(names: list[str], given: str | None, settings: Settings) -> Format:
    if given is not None:
        return "csv" if given == "tsv" else cast(Format, given)
    if settings.input.encoding == "text":
        return "text"
    name_by_format = {_input_format(name): name for name in names}
    if name_by_format.keys() == {"json", "jsonl"}:
        return "json"
    if len(name_by_format) > 1:
        (format_, first), (other, second) = list(name_by_format.items())[:2]
        raise UsageError(
            f"{shown(first)} looks like {format_}, {shown(second)} like {other}; run them one after the "
            "other on one --state, which finds duplicates across them, or add --format if a name misleads"
        )
    return next(iter(name_by_format))


def _delimiter(given: str) -> str:
    delimiter = _NAMED_DELIMITERS.get(given, given)
    if len(delimiter) != 1 or not delimiter.isascii():
        raise UsageError(f"--delimiter {given!r}: must be one ASCII character, or tab")
    if delimiter.isalnum() or delimiter in '"\r\n\0':
        raise UsageError(f"--delimiter {given!r}: cannot be a quote, a letter, a digit or the end of a line")
    return delimiter


def _is_by_tab(names: list[str]) -> bool:
    """Whether the inputs are named *.tsv. raises: UsageError if some are and others have other endings"""
    by_tab = [name for name in names if ending_of(name) == _BY_TAB]
    others = [name for name in names if ending_of(name) not in (_BY_TAB, "")]
    if by_tab and others:
        raise UsageError(
            f"{shown(by_tab[0])} looks separated by tabs, {shown(others[0])} by commas; "
            "run them one after the other on one --state, which finds duplicates across them, "
            "or add --delimiter"
        )
    return bool(by_tab)


def has_known_ending(name: str) -> bool:
    """Whether a file of this name can be read without --format."""
    return ending_of(name) in _ENDINGS


def known_endings() -> str:
    """All known file name endings, as text for a message."""
    return f"{', '.join(_ENDINGS)}, or one of them with {_listed(PACKED_ENDINGS)} behind it"


def refuse_empty_names(inputs: list[str]) -> None:
    """Refuse an input whose name is the empty string. raises: UsageError"""
    if "" in inputs:
        raise UsageError("an input's name is empty; name a file, or `-` for stdin")


def refuse_output_ending(name: str, dialect: Dialect, *, given: bool = False) -> None:
    """Refuse an output whose file name ending belongs to another format than its rows have.

    given: the user named the format by a flag or setting; then an ending of another line-based format is
        assumed to be intended, and is accepted
    raises: UsageError
    """
    looks, format_ = _promised(name), dialect.format
    packing = PurePath(name).suffix
    if format_ in TABLES and packing.lower() in PACKED_ENDINGS:
        raise UsageError(f"-o {shown(name)}: Parquet and Arrow compress inside; name it without {packing}")
    holds = "tsv" if format_ == "csv" and dialect.delimiter == "\t" else format_
    if {looks, holds} == {"csv", "tsv"} and not given:
        inside = "tabs" if holds == "tsv" else repr(dialect.delimiter)
        raise UsageError(
            f"-o {shown(name)}: the ending says {looks}, but rows are written unchanged, separated by "
            f"{inside}; name a file that ends with .{holds}"
        )
    fits = looks in (None, holds) or {looks, holds} == {"json", "jsonl"}
    is_table = looks in TABLES or format_ in TABLES
    if looks in _OTHER_ENDINGS.values() or not (fits or (given and not is_table)):
        raise UsageError(
            f"-o {shown(name)}: looks like {looks}, but rows come out as they came in, as {format_}; "
            f"name another file{'' if given else ', or name their format with --format'}"
        )


def refuse_other_endings(holds: str, allowed: tuple[str, ...], names: dict[str, str | None]) -> None:
    """Refuse output files whose name endings belong to another format than what is written into them.

    holds: the content in words, for the error text
    allowed: formats of FORMATS whose endings are accepted
    names: name of the file for each flag, None if the flag was not used
    raises: UsageError
    """
    for flag, name in names.items():
        if name is None:
            continue
        looks = _promised(name)
        if looks is not None and looks not in allowed:
            problem = f"looks like {looks}, but holds {holds}; name another file"
            raise UsageError(f"{flag} {shown(name)}: {problem}")


def refuse_packed_endings(names: dict[str, str | None]) -> None:
    """Refuse output files that are never compressed, but whose names end like compressed ones.

    names: name of the file for each flag, None if the flag was not used
    raises: UsageError
    """
    for flag, name in names.items():
        if name is not None and PurePath(name).suffix.lower() in PACKED_ENDINGS:
            problem = f"is not written compressed; leave {PurePath(name).suffix} out"
            raise UsageError(f"{flag} {shown(name)}: {problem}")


def refuse_endings_of_reports(names: dict[str, str | None]) -> None:
    """Refuse reports whose name endings belong to a format other than JSON lines. raises: UsageError"""
    refuse_other_endings("JSON lines", _LINES_OF_JSON, names)


def _promised(name: str) -> str | None:
    """The format that the ending of an output's name stands for, None for an unknown ending or stdout."""
    if name == STDOUT:
        return None
    suffix = ending_of(name)
    return "tsv" if suffix == _BY_TAB else _ENDINGS.get(suffix) or _OTHER_ENDINGS.get(suffix)


def _input_format(name: str) -> Format:
    format_ = _ENDINGS.get(ending_of(name)) if name != STDIN else None
    is_file = is_address(name) or (Path(name).is_file() and not PurePath(name).is_relative_to("/dev"))
    if format_ is None and name != STDIN and is_file:
        endings = ", ".join(_ENDINGS)
        raise UsageError(
            f"{shown(name)}: {_OTHER_INPUTS.get(ending_of(name), _NO_ENDING)}; known endings are {endings}, "
            f"each also with {_listed(PACKED_ENDINGS)} behind it; or add --format {_listed(FORMATS)}"
        )
    return format_ or "jsonl"


def ending_of(name: str) -> str:
    """The file name ending in lower case, without the ending of a compression: `.csv` for `a.CSV.gz`."""
    path = PurePath(shown(name))
    packed = path.suffix.lower() in PACKED_ENDINGS
    return (PurePath(path.stem).suffix if packed else path.suffix).lower()


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
