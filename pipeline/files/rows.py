"""Splits blocks of bytes into rows (lines, CSV records or JSON documents), each with a limit on its size."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self, TypeVar

from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.source import StoppedError
from twinsieve.pipeline.messages.spelling import without_escapes
from twinsieve.stages.rows.lines import Lines

_T = TypeVar("_T")

_BLANK = 0x20
"""The greatest byte that `bytes.strip` takes away."""

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
    """

    rows: Sequence[bytes | None]
    line: int
    lines_of: list[int] | None = None
    heads: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    terminated: bool = True

    def filled(self, delimiter: bytes = b"\n") -> Sequence[int]:
        """Indices of the rows that contain more than whitespace.

        delimiter: of CSV; a row that contains it counts too, even if all fields are blank
        """
        rows = self.rows
        if isinstance(rows, Lines):
            if not rows.longest:
                return []
            # Most inputs have no row that begins with a blank.
            if rows.least_first_byte() > _BLANK:
                return range(len(rows))
        return [number for number, row in enumerate(rows) if row is None or row.strip() or delimiter in row]

    def only(self, numbers: Sequence[int]) -> Rows:
        """The rows with these indices, for decoding; their line numbers are not kept."""
        heads = {row: self.heads[number] for row, number in enumerate(numbers) if number in self.heads}
        return Rows([self.rows[number] for number in numbers], self.line, heads=heads)

    def raw(self, row: int) -> tuple[bytes, int]:
        """The row's bytes (only the first ones if the row is too large), and its full size in bytes."""
        content = self.rows[row]
        return self.heads[row] if content is None else (content, len(content))


@dataclass(slots=True)
class _GrowingRows(Rows):
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


class _OpenRow:
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

    def end(self, rows: _GrowingRows) -> _GrowingRows:
        """Append the finished row to `rows` and return them; this object is then ready for the next row."""
        size = self.size
        rows.add(self.taken(), size, self._max_bytes)
        return rows

    def taken(self) -> bytes:
        """What was read so far; this object is then ready for the next row."""
        content = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return content


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
    rest = _OpenRow(max_bytes)
    for block in _noting(blocks, lambda: rest.size):
        first, end = block.find(b"\n"), block.rfind(b"\n") + 1
        if first < 0:
            rest.add(block)
            continue
        rows: Rows
        if rest.size + first > max_bytes:
            rest.add(block[:first])
            rows = rest.end(_GrowingRows([], line)).with_lines(Lines.of(block[first + 1 : end]), max_bytes)
        else:
            lines = Lines.of(rest.taken() + block[:end])
            rows = Rows(lines, line)
            if lines.longest > max_bytes:
                rows = _GrowingRows([], line).with_lines(lines, max_bytes)
        rest.add(block[end:])
        if line == 1 and len(rows.rows) > 2 * FIRST_ROWS and not rows.heads:
            yield Rows(rows.rows[:FIRST_ROWS], line)
            line += FIRST_ROWS
            rows = Rows(rows.rows[FIRST_ROWS:], line)
        yield rows
        line += len(rows.rows)
    if rest.size:
        yield rest.end(_GrowingRows([], line, terminated=False))


def _noting(items: Iterator[_T], unfinished: Callable[[], int]) -> Iterator[_T]:
    """The items; if reading one raises StoppedError, `unfinished()` bytes are added to the error."""
    try:
        yield from items
    except StoppedError as stopped:
        stopped.unfinished += unfinished()
        raise


def join_records(batches: Iterator[Rows], max_bytes: int, delimiter: bytes = b",") -> Iterator[Rows]:
    """The CSV records in these lines: a line that ends inside quotes continues in the next line.

    A quote counts as opening only at the beginning of a field: `5" pipe` is an ordinary field. A record that
    exceeds the limit ends there and is too large; the next line begins a new record. So a missing quote
    costs only one record.
    """
    record = _OpenRow(max_bytes)
    lines = 0
    quoted = False
    start = 1
    terminated = True
    # An unfinished record also holds the newline of its last line, hence `+ bool(lines)`.
    for batch in _noting(batches, lambda: record.size + bool(lines)):  # noqa: B023 (current values are meant)
        if not lines and isinstance(batch.rows, Lines) and b'"' not in batch.rows.piece():
            # Fast path: no line has a quote, so every line is a whole record. Without this path, inputs with
            # very many blank lines would be slow.
            yield replace(batch, line=start)
            start += len(batch.rows)
            terminated = batch.terminated
            continue
        spans: list[int] = []
        rows = _GrowingRows([], start, spans)
        for number in range(len(batch.rows)):
            line, size = batch.raw(number)
            if lines:
                record.add(b"\n")
            record.add(line, size)
            lines += 1
            if quoted or b'"' in line:
                quoted = _ends_quoted(line, quoted, delimiter)
            if not quoted or record.size >= max_bytes:
                record.end(rows)
                spans.append(lines)
                lines, quoted = 0, False
        terminated = batch.terminated
        if spans:
            rows.terminated = terminated or lines > 0
            yield rows
            start += sum(spans)
    if lines:
        yield record.end(_GrowingRows([], start, [lines], terminated=terminated))


def _ends_quoted(line: bytes, quoted: bool, delimiter: bytes) -> bool:
    """Whether the line ends inside a quoted field.

    quoted: whether the line begins inside a quoted field
    """
    position = 0
    while True:
        if quoted:
            position = line.find(b'"', position)
            if position < 0:
                return True
            position += 1
            if line.startswith(b'"', position):
                position += 1
                continue
            quoted = False
        elif line.startswith(b'"', position):
            quoted = True
            position += 1
            continue
        position = line.find(delimiter, position) + 1
        if not position:
            return False


_OUTSIDE = re.compile(rb'[^"\[\]{}]*(?:"[^"]*"[^"\[\]{}]*){0,1000}')
"""Matches up to the next bracket, or up to the quote of a string whose end is not in the block. The bytes
must have no escapes.

It matches 1,000 strings at most, because the `re` module needs memory for each until the match is done."""
_PLAIN = re.compile(rb'[^ \t\r\n,"\[\]{}]*')
"""A number or a word such as `true`."""
_SPACE = re.compile(rb"[ \t\r\n]*")
_BREAK = re.compile(rb"(?<![ \t])[ \t]*[\r\n][ \t\r\n]*")
"""A line break with the blanks around it. The lookbehind makes a match begin at the first blank only;
otherwise the search would start again at each of very many blanks."""
_PIECE_BYTES = 1 << 16
_QUOTE, _COMMA, _OPENS, _CLOSES = b'"'[0], b","[0], b"[{", b"]}"


def holds_lines(head: bytes) -> bool:
    """Whether a file that begins with `head` holds JSON lines.

    It does if its first line is a whole document and not an array.

    head: the first bytes of the file; if the first line is longer than these, it counts as whole
    """
    first, newline, _ = head.lstrip(b" \t\r\n").partition(b"\n")
    if first.startswith(b"["):
        return False
    return not newline or not first or _Document(first[0]).end(without_escapes(first), 1) > 0


def one_line(row: bytes) -> bytes:
    r"""The JSON document in one line: without line breaks and indentation, which have no meaning in JSON.

    >>> one_line(b'{\n  "a": [1,\r\n 2]\n}')
    b'{"a": [1,2]}'
    """
    if b"\n" not in row and b"\r" not in row:
        return row
    pieces, start = [], 0
    while start < len(row):
        # Work in pieces, because `sub` on the whole row would need 80 bytes of memory for each line.
        stop = row.find(b"\n", start + _PIECE_BYTES)
        stop = len(row) if stop < 0 else stop
        pieces.append(_BREAK.sub(b"", row[start:stop]).rstrip(b" \t\r"))
        start = stop
    return b"".join(pieces)


class _Document:
    """State of the search for the end of one JSON document.

    first: the first byte of the document, which is already consumed
    """

    def __init__(self, first: int) -> None:
        self._depth = 1 if first in _OPENS else 0
        self._in_text = first == _QUOTE
        self.is_plain = not self._depth and not self._in_text
        """True for a number or a word, which may also end at the end of the file."""

    def end(self, block: bytes, position: int) -> int:
        """Position in the block after the end of the document, -1 if it continues after the block.

        block: without escapes, so that every quote begins or ends a string
        position: where to continue the search
        """
        if self.is_plain:
            end = _after(_PLAIN, block, position)
            return end if end < len(block) else -1
        while True:
            if self._in_text:
                position = block.find(b'"', position) + 1
                if not position:
                    return -1
                self._in_text = False
            else:
                position = _after(_OUTSIDE, block, position)
                if position == len(block):
                    return -1
                if block[position] == _QUOTE:
                    self._in_text = True
                else:
                    self._depth += 1 if block[position] in _OPENS else -1
                position += 1
            if not self._depth and not self._in_text:
                return position


def indent_of(row: bytes) -> bytes:
    r"""Indentation of a document that spans lines, taken from its last line; b"" for one line.

    >>> indent_of(b'{\n    "a": 1\n  }')
    b'  '
    """
    last = row[row.rfind(b"\n") + 1 :] if b"\n" in row else b""
    return last[: len(last) - len(last.lstrip(b" \t"))]


def split_documents(blocks: Iterator[bytes], max_bytes: int, shown: str) -> Iterator[Rows]:
    """Every JSON document of the input, in order: the elements of arrays, and documents outside arrays.

    shown: name of the input, for errors
    raises: FileError naming the line, if a comma or a bracket between documents is missing or misplaced
    """
    cutter = _Cutter(max_bytes, shown)
    for block in blocks:
        rows = cutter.cut(block)
        if rows.rows:
            yield rows
    rows = cutter.last()
    if rows.rows:
        yield rows


class _Cutter:
    """Cuts consecutive blocks of one input into JSON documents; see `split_documents`."""

    def __init__(self, max_bytes: int, shown: str) -> None:
        self._shown = shown
        self._line = 1
        self._array_from = 0
        """Line in which the currently open array begins; 0 if no array is open."""
        self._comma_due = self._just_opened = False
        self._escaped = False
        """True if the last block ended with a backslash; the escaped character begins the next block."""
        self._document: _Document | None = None
        self._began = 1
        self._row = _OpenRow(max_bytes)
        self._rows = _GrowingRows([], 1)
        self._starts: list[int] = []

    def cut(self, block: bytes) -> Rows:
        """The documents that end in this block."""
        position, plain = 0, self._without_escapes(block)
        while True:
            document, start, seen = self._document, position, 0
            if document is None:
                document, start = self._between(block, plain, position)
                if document is None:
                    return self._taken()
                self._document, seen = document, 1
            end = document.end(plain, start + seen)
            stop = len(block) if end < 0 else end
            self._row.add(block[start:stop])
            self._line += block.count(b"\n", start, stop)
            if end < 0:
                return self._taken()
            self._close()
            position = end

    def last(self) -> Rows:
        """The documents that end at the end of the file. raises: FileError for an unfinished one"""
        if self._document is not None and self._document.is_plain:
            self._close()
        advice = "has no end; fetch the file again, or mend it"
        if self._document is not None:
            lines = "" if self._array_from else "; if it holds JSON lines, add --format jsonl"
            raise FileError(f"{self._shown}: the document that begins in line {self._began} {advice}{lines}")
        if self._array_from:
            raise FileError(f"{self._shown}: the array that begins in line {self._array_from} {advice}")
        return self._taken()

    def _without_escapes(self, block: bytes) -> bytes:
        """The block with its escapes replaced, and its first byte too if a backslash ended the last block."""
        plain = without_escapes(block)
        if self._escaped and block:
            plain = b"_" + without_escapes(block[1:])
        self._escaped = plain.endswith(b"\\") if block else self._escaped
        return plain

    def _between(self, block: bytes, plain: bytes, position: int) -> tuple[_Document | None, int]:
        """The next document that begins in this block (None if none does), and its position.

        Checks the commas and array brackets before it.
        plain: the block without escapes
        raises: FileError for a misplaced byte
        """
        while True:
            start, position = position, _after(_SPACE, plain, position)
            self._line += block.count(b"\n", start, position)
            if position == len(block):
                return None, position
            byte = plain[position]
            if self._comma_due:
                if byte == _COMMA:
                    self._comma_due = False
                elif byte == _CLOSES[0]:
                    self._array_from, self._comma_due = 0, False
                else:
                    raise self._misplaced(block[position], "a comma or the end of the array")
            elif byte == _OPENS[0] and not self._array_from:
                self._array_from, self._just_opened = self._line, True
            elif byte == _CLOSES[0] and self._just_opened:
                self._array_from, self._just_opened = 0, False
            elif byte == _COMMA or byte in _CLOSES:
                raise self._misplaced(block[position], "a document")
            else:
                self._began = self._line
                self._just_opened = False
                return _Document(byte), position
            position += 1

    def _misplaced(self, byte: int, due: str) -> FileError:
        shown = repr(chr(byte)) if byte < 0x80 else f"the byte 0x{byte:02x}"
        return FileError(f"{self._shown}:{self._line}: has {shown} where {due} is due; mend it there")

    def _close(self) -> None:
        self._row.end(self._rows)
        self._starts.append(self._began)
        self._document = None
        self._comma_due = bool(self._array_from)

    def _taken(self) -> Rows:
        """The finished rows; the lines of a row reach to the line in which the next row begins."""
        rows, starts = self._rows, [*self._starts, self._line]
        rows.line, rows.lines_of = starts[0], [after - before for before, after in pairwise(starts)]
        self._rows, self._starts = _GrowingRows([], 1), []
        return rows


def _after(pattern: re.Pattern[bytes], block: bytes, start: int) -> int:
    """End position of a match that begins at `start`; the pattern must be able to match zero bytes."""
    match = pattern.match(block, start)
    return start if match is None else match.end()
