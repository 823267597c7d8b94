"""Blocks of bytes as rows: lines, or CSV records with quoted newlines; each within its limit of bytes."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.source import StoppedError
from twinsieve.pipeline.messages.spelling import without_escapes

_T = TypeVar("_T")

SHOWN_BYTES = 256
"""How much of a row that is too large goes to the dead letter."""


@dataclass(slots=True)
class Rows:
    """Consecutive rows of one input.

    rows: bytes of each without its newline; a carriage return before it is still there. None: too large
    line: line that the first row begins in, from 1
    lines_of: lines each row spans, None where every row is one line
    heads: of rows that are too large, their first bytes and their size
    terminated: False when the last row had no newline
    """

    rows: list[bytes | None]
    line: int
    lines_of: list[int] | None = None
    heads: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    terminated: bool = True

    def add(self, row: bytes, size: int, max_bytes: int) -> None:
        """Append a row; of one that is too large `row` may be no more than its head."""
        if size > max_bytes:
            self.heads[len(self.rows)] = (row[:SHOWN_BYTES], size)
            self.rows.append(None)
        else:
            self.rows.append(row)

    def filled(self, delimiter: bytes = b"\n") -> list[int]:
        """Numbers of the rows that hold more than blanks; delimiter: of CSV, with which blanks are fields."""
        rows = self.rows
        if not self.heads and not any(rows):
            return []
        return [number for number, row in enumerate(rows) if row is None or row.strip() or delimiter in row]

    def only(self, numbers: list[int]) -> Rows:
        """The rows with these numbers, to be read; without their lines."""
        heads = {row: self.heads[number] for row, number in enumerate(numbers) if number in self.heads}
        return Rows([self.rows[number] for number in numbers], self.line, heads=heads)

    def raw(self, row: int) -> tuple[bytes, int]:
        """The row's bytes, or the head of one that is too large; and its full size."""
        content = self.rows[row]
        return self.heads[row] if content is None else (content, len(content))


class _OpenRow:
    """A row without its end so far; of one that is too large only the head is kept.

    size: how many bytes it has so far
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self.size = 0

    def add(self, piece: bytes, size: int | None = None) -> None:
        """Append a piece; size: of the piece, where it is only a head."""
        self.size += len(piece) if size is None else size
        self._pieces.append(piece[:SHOWN_BYTES] if self.size > self._max_bytes else piece)
        if self.size > self._max_bytes:
            self._pieces = [b"".join(self._pieces)[:SHOWN_BYTES]]

    def end(self, rows: Rows) -> Rows:
        """Append the row to these rows and return them; the next row may begin."""
        rows.add(b"".join(self._pieces), self.size, self._max_bytes)
        self._pieces, self.size = [], 0
        return rows


def shown_bytes(name: str, raw: bytes, codec: str) -> dict[str, str]:
    r"""The bytes of a row as a member of that name: as text of that encoding, or else as base64.

    >>> shown_bytes("row", b"a", "utf-8"), shown_bytes("row", b"\xff", "utf-8")
    ({'row': 'a'}, {'row_base64': '/w=='})
    """
    try:
        return {name: raw.decode(codec)}
    except UnicodeError:
        return {f"{name}_base64": base64.b64encode(raw).decode()}


def split_lines(blocks: Iterator[bytes], max_bytes: int) -> Iterator[Rows]:
    """Every line of the input, in batches of what came in one block."""
    line = 1
    rest = _OpenRow(max_bytes)
    for block in _noting(blocks, lambda: rest.size):
        first, *others = block.split(b"\n")
        rest.add(first)
        if not others:
            continue
        rows = rest.end(Rows([], line))
        rest.add(others.pop())
        if max(map(len, others), default=0) <= max_bytes:
            rows.rows += others
        else:
            for other in others:
                rows.add(other, len(other), max_bytes)
        yield rows
        line += len(rows.rows)
    if rest.size:
        yield rest.end(Rows([], line, terminated=False))


def _noting(items: Iterator[_T], unfinished: Callable[[], int]) -> Iterator[_T]:
    """The items; a StoppedError among them gets the number of bytes of an unfinished row."""
    try:
        yield from items
    except StoppedError as stopped:
        stopped.unfinished += unfinished()
        raise


def join_records(batches: Iterator[Rows], max_bytes: int, delimiter: bytes = b",") -> Iterator[Rows]:
    """CSV records of these lines: a line with an open quote continues in the next one.

    A quote opens where a field begins, and nowhere else: `5" pipe` is a field like others. A record that
    outgrows the limit is given up there, and the next line begins a new one, so that a lost quote costs one.
    """
    record = _OpenRow(max_bytes)
    lines = 0
    quoted = False
    start = 1
    terminated = True
    # The newline of its last line is held too.
    for batch in _noting(batches, lambda: record.size + bool(lines)):  # noqa: B023 (as it is then)
        if not lines and not batch.heads and not any(b'"' in row for row in batch.rows if row):
            # Every line is a record; among them may be very many blank ones.
            yield replace(batch, line=start)
            start += len(batch.rows)
            terminated = batch.terminated
            continue
        spans: list[int] = []
        rows = Rows([], start, spans)
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
        yield record.end(Rows([], start, [lines], terminated=terminated))


def _ends_quoted(line: bytes, quoted: bool, delimiter: bytes) -> bool:
    """Whether the line ends inside a quoted field; quoted: whether it began in one."""
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
"""All up to the next bracket, or up to a text that has no end yet, of bytes without escapes.

It takes 1,000 texts at most: for each, the `re` module holds memory until the match is done."""
_PLAIN = re.compile(rb'[^ \t\r\n,"\[\]{}]*')
"""A number or a word."""
_SPACE = re.compile(rb"[ \t\r\n]*")
_BREAK = re.compile(rb"(?<![ \t])[ \t]*[\r\n][ \t\r\n]*")
"""Only where blanks begin: else the search would start again at each of very many blanks."""
_PIECE_BYTES = 1 << 16
_QUOTE, _COMMA, _OPENS, _CLOSES = b'"'[0], b","[0], b"[{", b"]}"


def holds_lines(head: bytes) -> bool:
    """Whether a file that begins so holds JSON lines: its first line is whole, and no array.

    head: whatever comes first; a first line longer than that counts as whole
    """
    first, newline, _ = head.lstrip(b" \t\r\n").partition(b"\n")
    if first.startswith(b"["):
        return False
    return not newline or not first or _Document(first[0]).end(without_escapes(first), 1) > 0


def one_line(row: bytes) -> bytes:
    r"""The document without its line breaks and indentation; between tokens they mean nothing.

    >>> one_line(b'{\n  "a": [1,\r\n 2]\n}')
    b'{"a": [1,2]}'
    """
    if b"\n" not in row and b"\r" not in row:
        return row
    pieces, start = [], 0
    while start < len(row):
        # In pieces: while bytes are put together, Python holds 80 bytes for each line.
        stop = row.find(b"\n", start + _PIECE_BYTES)
        stop = len(row) if stop < 0 else stop
        pieces.append(_BREAK.sub(b"", row[start:stop]).rstrip(b" \t\r"))
        start = stop
    return b"".join(pieces)


class _Document:
    """State of reading one document; first: its first byte, which was read."""

    def __init__(self, first: int) -> None:
        self._depth = 1 if first in _OPENS else 0
        self._in_text = first == _QUOTE
        self.is_plain = not self._depth and not self._in_text
        """A number or a word, which needs nothing behind it."""

    def end(self, block: bytes, position: int) -> int:
        """Where it ends in the block, -1 if it continues behind.

        block: without escapes, so that every quote begins or ends a text; position: where to continue
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
    r"""Blanks that stood before the document, where it spans lines: those before its last line.

    >>> indent_of(b'{\n    "a": 1\n  }')
    b'  '
    """
    last = row[row.rfind(b"\n") + 1 :] if b"\n" in row else b""
    return last[: len(last) - len(last.lstrip(b" \t"))]


def split_documents(blocks: Iterator[bytes], max_bytes: int, shown: str) -> Iterator[Rows]:
    """Every element of an array, or of several, and every document outside of one, in order.

    shown: name of the input, for errors
    raises: FileError naming the line, where documents do not follow each other as they should
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
    """Cuts blocks that follow each other."""

    def __init__(self, max_bytes: int, shown: str) -> None:
        self._shown = shown
        self._line = 1
        self._array_from = 0
        """Line in which the array begins that is open; 0: none is."""
        self._comma_due = self._just_opened = False
        self._escaped = False
        """The last block ended with a backslash whose character is still to come."""
        self._document: _Document | None = None
        self._began = 1
        self._row = _OpenRow(max_bytes)
        self._rows = Rows([], 1)
        self._starts: list[int] = []

    def cut(self, block: bytes) -> Rows:
        """The rows that end in the block."""
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
        """What ends with the file. raises: FileError for what has no end"""
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
        """The block, without its first byte where the last block ended inside an escape."""
        plain = without_escapes(block)
        if self._escaped and block:
            plain = b"_" + without_escapes(block[1:])
        self._escaped = plain.endswith(b"\\") if block else self._escaped
        return plain

    def _between(self, block: bytes, plain: bytes, position: int) -> tuple[_Document | None, int]:
        """The document that begins next, None if none does in this block; and where.

        plain: the block without escapes
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
        """The rows that ended; the span of each reaches to where the next one begins."""
        rows, starts = self._rows, [*self._starts, self._line]
        rows.line, rows.lines_of = starts[0], [after - before for before, after in pairwise(starts)]
        self._rows, self._starts = Rows([], 1), []
        return rows


def _after(pattern: re.Pattern[bytes], block: bytes, start: int) -> int:
    """Where a pattern that always matches, if only nothing, ends."""
    match = pattern.match(block, start)
    return start if match is None else match.end()
