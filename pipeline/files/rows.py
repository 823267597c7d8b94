"""`Rows`: rows of text with their exact bytes; and lines as rows, each with a limit on its size."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.files.source import StoppedError
from twinsieve.pipeline.messages.decode import Unreadable
from twinsieve.stages.rows.lines import Lines

_T = TypeVar("_T")

_BLANK = 0x20
"""The greatest byte that `bytes.strip` takes away."""

_OF_JSON = (DeadLetterReason.INVALID_JSON, DeadLetterReason.NOT_AN_OBJECT, DeadLetterReason.TOO_LARGE)

_TWO_OBJECTS = re.compile(rb"\}[ \t]*\{")

SHOWN_BYTES = 256
"""Of a row that is too large, only this many of its first bytes are kept, for the dead letter."""


FIRST_ROWS = 1_024
"""Lines of the first batch; enough to tell which fields rows have (`messages.unseen.ENOUGH_ROWS`)."""


@dataclass(slots=True)
class Rows:
    """Consecutive rows of one input.

    rows: bytes of each row without its newline, but with a carriage return before it; None if too large.
        `Lines` if all lie in one piece
    line: number of the line in which the first row begins, from 1
    lines_of: number of lines that each row spans; None if every row is one line
    heads: for each row that is too large, by its index: its first bytes and its full size
    terminated: False if the last row had no newline
    quoted: whether quotes may enclose fields of the rows, where rows have fields
    repeats: indices of the rows that are the header of the input once more, ascending; these hold no message
    """

    rows: Sequence[bytes | None]
    line: int
    lines_of: list[int] | None = None
    heads: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    terminated: bool = True
    quoted: bool = True
    repeats: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def lines(self) -> NDArray[np.int64]:
        """int64[n]: line number in the input where each row begins, from 1."""
        count, spans = len(self.rows), self.lines_of
        before = np.arange(count) if spans is None else np.cumsum([0, *spans])[:count]
        return np.asarray(before + self.line, np.int64)

    def filled(self, delimiter: bytes = b"\n") -> Sequence[int]:
        """Indices of the rows that contain more than whitespace, without `repeats`.

        delimiter: of CSV; a row that contains it counts too, even if all fields are blank
        """
        rows, repeats = self.rows, set(self.repeats)
        if isinstance(rows, Lines):
            if not rows.longest:
                return []
            # Most inputs have no row that begins with a blank.
            if rows.least_first_byte() > _BLANK and not repeats:
                return range(len(rows))
        return [
            number
            for number, row in enumerate(rows)
            if (row is None or row.strip() or delimiter in row) and number not in repeats
        ]

    def only(self, numbers: Sequence[int]) -> Rows:
        """The rows with these indices, for decoding; their line numbers are not kept."""
        heads = {row: self.heads[number] for row, number in enumerate(numbers) if number in self.heads}
        return Rows([self.rows[number] for number in numbers], self.line, heads=heads, quoted=self.quoted)

    def raw(self, row: int) -> tuple[bytes, int]:
        """The row's bytes (only the first ones if the row is too large), and its full size in bytes."""
        content = self.rows[row]
        return self.heads[row] if content is None else (content, len(content))

    def elements(self) -> Sequence[int | None] | None:
        """None: every row is a line, or some."""
        return None

    def advice(self, bad: Unreadable) -> str | None:
        """What to do about an unreadable row, if its bytes show it: another encoding, line end or JSON."""
        if bad.reason is DeadLetterReason.NOT_UTF8:
            return "if it is gb18030, big5, shift_jis, cp1252 or another one, add it, as --encoding gb18030"
        if bad.reason not in _OF_JSON or self.lines_of is not None:
            return None
        raw = self.raw(bad.row)[0].strip()
        if (ends := old_line_ends(raw)) is not None:
            return ends
        if raw.startswith(b"["):
            return "if it is a JSON array, add --format json"
        if _TWO_OBJECTS.search(raw):
            return "if several objects stand in one line, add --format json"
        return "if its documents span lines, add --format json" if raw == b"{" else None


@dataclass(slots=True)
class GrowingRows(Rows):
    """Rows that are found one by one."""

    rows: list[bytes | None]

    def add(self, row: bytes, size: int, max_bytes: int) -> None:
        """Append a row.

        row: its bytes; if the row is too large, its first bytes are enough
        size: its full size in bytes
        """
        if size > max_bytes:
            self.heads[len(self.rows)] = (row[:SHOWN_BYTES], size)
            self.rows.append(None)
        else:
            self.rows.append(row)

    def with_lines(self, lines: Lines, max_bytes: int) -> Self:
        """The same rows with the lines behind them."""
        for each in lines:
            self.add(each, len(each), max_bytes)
        return self


class OpenRow:
    """A row whose end has not been read yet; if it is too large, only its first bytes are kept.

    size: number of bytes read so far
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self.size = 0

    def add(self, piece: bytes, size: int | None = None) -> None:
        """Append a piece of the row.

        size: full size of the piece, if `piece` is only its first bytes
        """
        self.size += len(piece) if size is None else size
        self._pieces.append(piece[:SHOWN_BYTES] if self.size > self._max_bytes else piece)
        if self.size > self._max_bytes:
            self._pieces = [b"".join(self._pieces)[:SHOWN_BYTES]]

    def end(self, rows: GrowingRows) -> GrowingRows:
        """Append the finished row to `rows` and return them; this object is then ready for the next row."""
        size = self.size
        rows.add(self.taken(), size, self._max_bytes)
        return rows

    def taken(self) -> bytes:
        """What was read so far; this object is then ready for the next row."""
        content = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return content


def old_line_ends(row: bytes) -> str | None:
    r"""What to do about a row that holds carriage returns, which end lines in files of old programs; or None.

    >>> old_line_ends(b"one\rtwo\r"), old_line_ends(b"one\r")
    ("if carriage returns end its lines, turn them into newlines first: tr '\\r' '\\n'", None)
    """
    if b"\r" not in row.rstrip(b"\r"):
        return None
    return r"if carriage returns end its lines, turn them into newlines first: tr '\r' '\n'"


def shown_bytes(name: str, raw: bytes, codec: str) -> dict[str, str]:
    r"""The bytes of a row as one JSON member: decoded as text, or as base64 if they cannot be decoded.

    name: name of the member; codec: name of the encoding

    >>> shown_bytes("row", b"a", "utf-8"), shown_bytes("row", b"\xff", "utf-8")
    ({'row': 'a'}, {'row_base64': '/w=='})
    """
    try:
        return {name: raw.decode(codec)}
    except UnicodeError:
        return {f"{name}_base64": base64.b64encode(raw).decode()}


def split_lines(blocks: Iterator[bytes], max_bytes: int) -> Iterator[Rows]:
    """Every line of the input, in batches. A batch contains the lines that end in the same block; the first
    lines are a batch of their own, so that they are ready sooner."""
    line = 1
    rest = OpenRow(max_bytes)
    for block in noting(blocks, lambda: rest.size):
        first, end = block.find(b"\n"), block.rfind(b"\n") + 1
        if first < 0:
            rest.add(block)
            continue
        rows: Rows
        if rest.size + first > max_bytes:
            rest.add(block[:first])
            rows = rest.end(GrowingRows([], line)).with_lines(Lines.of(block[first + 1 : end]), max_bytes)
        else:
            lines = Lines.of(rest.taken() + block[:end])
            rows = Rows(lines, line)
            if lines.longest > max_bytes:
                rows = GrowingRows([], line).with_lines(lines, max_bytes)
        rest.add(block[end:])
        if line == 1 and len(rows.rows) > 2 * FIRST_ROWS and not rows.heads:
            yield Rows(rows.rows[:FIRST_ROWS], line)
            line += FIRST_ROWS
            rows = Rows(rows.rows[FIRST_ROWS:], line)
        yield rows
        line += len(rows.rows)
    if rest.size:
        yield rest.end(GrowingRows([], line, terminated=False))


def noting(items: Iterator[_T], unfinished: Callable[[], int]) -> Iterator[_T]:
    """The items; if reading one raises StoppedError, `unfinished()` bytes are added to the error."""
    try:
        yield from items
    except StoppedError as stopped:
        stopped.unfinished += unfinished()
        raise
