"""What a format of files has: `Format` with its options, a `Reader`, a `Writer`, and chunks of rows.

Each format is one module in `files/formats`. Nothing outside that folder asks which format a file has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.files import FORMATS

if TYPE_CHECKING:
    from twinsieve.pipeline.files.marks import RowMark
    from twinsieve.pipeline.files.source import InputSource
    from twinsieve.pipeline.files.write import Output
    from twinsieve.pipeline.messages.decode import Unreadable
    from twinsieve.pipeline.messages.reader import MessageColumns, MessageReader
    from twinsieve.pipeline.settings.model import Settings


class ChunkRows(Protocol):
    """Consecutive rows of one input, in the form that their format keeps them in."""

    def __len__(self) -> int: ...

    def lines(self) -> NDArray[np.int64]:
        """int64[n]: line number in the input where each row begins, from 1; of a table the row number."""

    def raw(self, row: int) -> tuple[bytes, int]:
        """The row's bytes (only the first ones if the row is too large), and its full size in bytes."""

    def advice(self, bad: Unreadable) -> str | None:
        """What to do about an unreadable row, if its bytes show it."""

    def elements(self) -> Sequence[int | None] | None:
        """For each row its index in a list of its line, None if it is no item there; None if no row is."""


@dataclass(slots=True)
class RowChunk:
    """Consecutive rows of one input, and the messages that could be read from them.

    source: name of the input, as shown to the user
    columns: the messages; they refer to rows by their index in `rows`
    blank: number of rows that contain only whitespace; headers: of rows that are the header once more. These
        are neither messages nor unreadable rows
    doubt: why the input was probably not read as its writer meant it, and what to do; None without a doubt
    """

    source: str
    rows: ChunkRows
    columns: MessageColumns
    blank: int = 0
    doubt: str | None = None
    headers: int = 0
    _lines: NDArray[np.int64] | None = field(default=None, init=False, repr=False)

    def line_of(self, row: int) -> int:
        """Line number in the input where this row begins, from 1."""
        return int(self.lines()[row])

    def place_of(self, row: int) -> str:
        """The input, the line of this row, and its index in a list there, as in `posts.jsonl:3[17]`."""
        elements = self.rows.elements()
        element = None if elements is None else elements[row]
        return f"{self.source}:{self.line_of(row)}" + ("" if element is None else f"[{element}]")

    def lines(self) -> NDArray[np.int64]:
        """int64[n]: line number in the input where each row begins, from 1."""
        if self._lines is None:
            self._lines = self.rows.lines()
        return self._lines


class Writer(ABC):
    """Writes rows to one output, in the format of the inputs."""

    @abstractmethod
    def write(self, chunk: RowChunk, rows: list[int]) -> None:
        """Append the rows of a chunk with these indices (ascending). raises: FileError"""

    @abstractmethod
    def write_marked(self, chunk: RowChunk, marks: list[RowMark | None]) -> None:
        """Append the rows of a chunk with their marks; a row without a mark is left out.

        raises: FileError if a row already has the name of the mark
        """

    @abstractmethod
    def end(self) -> None:
        """Write what belongs behind the last row. raises: FileError"""

    @abstractmethod
    def close(self) -> None:
        """Stop writing, without what belongs behind the last row; may be called after `end`."""


class Task(NamedTuple):
    """What a reader reads for.

    messages: makes columns of decoded rows
    whole: the rows are written too; otherwise columns that are not judged may be left out
    marks: they are written with marks
    """

    messages: MessageReader
    settings: Settings
    whole: bool
    marks: bool


class Reader(ABC):
    """Reads inputs that fit each other, one after the other.

    What the first input shows (a header, a schema, a byte order mark) is kept: other inputs must fit it, and
    outputs are written like it.

    codec: name of the encoding of the rows in a chunk
    other_order: shown names of inputs whose columns have another order than those of the first input; their
        rows are returned with the columns in the order of the first input
    choices: what the inputs that were read so far showed about how to read them, as lines for the user, each
        with the first place that showed it
    """

    codec = "utf-8"
    other_order: Collection[str] = ()
    choices: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def rows(self, source: InputSource) -> Iterator[RowChunk]:
        """The rows of an input in order, without messages.

        raises: FileError if the input cannot be read, or has other columns than the first input
        """

    @abstractmethod
    def decoded(self, chunk: RowChunk) -> RowChunk:
        """A chunk of `rows` with its messages. The chunks of an input must come in order."""

    @abstractmethod
    def check(self, source: InputSource) -> None:
        """Check what an input shows before its rows. raises: FileError, UsageError, as `rows`"""

    @abstractmethod
    def writer(self, output: Output) -> Writer:
        """A writer of an output that is like the first input; that input was opened before."""


class Format(ABC):
    """A format of files, with the options that the user gave for it.

    name: in --format; title: for people
    endings: of names of its files
    includes: names of other formats whose files it reads too
    beginnings: first bytes of its files, as far as they show the format
    flags: the options that it takes, which are named like parameters of the class; implied_by: the one that
        names this format where --format is not given
    messages: whether a row is a JSON value or only a text; flat: fields have plain names, not paths
    cuts_lists: its reader makes a message of each item of a list that fields name with `[*]`
    packs: its files may be compressed, and all that such formats write may have any of their endings
    streams: a row can be read as soon as it is written
    no_marks: why its rows cannot hold marks; None if they can
    """

    name: ClassVar[str]
    title: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    includes: ClassVar[tuple[str, ...]] = ()
    beginnings: ClassVar[tuple[bytes, ...]] = ()
    flags: ClassVar[tuple[str, ...]] = ()
    implied_by: ClassVar[str | None] = None
    messages: ClassVar[Literal["json", "text"]] = "json"
    flat: ClassVar[bool] = False
    cuts_lists: ClassVar[bool] = False
    packs: ClassVar[bool] = True
    streams: ClassVar[bool] = True
    no_marks: ClassVar[str | None] = None

    @classmethod
    def for_inputs(cls, names: list[str], **options: str) -> Format:  # noqa: ARG003 (others look at the names)
        """The format of inputs with these names, with these options. raises: UsageError"""
        return cls(**options)

    @abstractmethod
    def reader(self, task: Task) -> Reader:
        """A new reader."""


@cache
def format_named(name: str) -> type[Format]:
    """The format that has this name in --format."""
    module, _, kind = FORMATS[name].partition(".")
    found: type[Format] = getattr(import_module(f"twinsieve.pipeline.files.formats.{module}"), kind)
    return found


def formats() -> list[type[Format]]:
    """All formats."""
    return [format_named(name) for name in FORMATS]
