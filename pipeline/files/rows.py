"""Blocks of bytes as rows: lines, or CSV records with quoted newlines; none is held beyond its limit."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.source import StoppedError

_T = TypeVar("_T")

SHOWN_BYTES = 256
"""How much of a row that is too large goes to the dead letter."""


@dataclass(slots=True)
class Rows:
    """Consecutive rows of one input.

    rows: bytes of each without its newline; a carriage return before it is still there. None: too large
    first: number of the first row in its input, from 1 (a CSV header has none)
    line: line that the first row begins in, from 1
    lines_of: lines each row spans, None where every row is one line
    heads: of rows that are too large, their first bytes and their size
    terminated: False when the last row had no newline
    """

    rows: list[bytes | None]
    first: int
    line: int
    lines_of: list[int] | None = None
    heads: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    terminated: bool = True


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
    number = 1
    rest = b""
    head, dropped = b"", 0
    for block in _noting(blocks, lambda: len(rest) + dropped):  # noqa: B023 (as they are then)
        parts = block.split(b"\n")
        if len(parts) == 1:
            if dropped or len(rest) + len(block) > max_bytes:
                head = (head + rest + block)[:SHOWN_BYTES]
                dropped += len(rest) + len(block)
                rest = b""
            else:
                rest += block
            continue
        rows: list[bytes | None] = []
        heads: dict[int, tuple[bytes, int]] = {}
        if dropped:
            heads[0] = ((head + parts[0])[:SHOWN_BYTES], dropped + len(parts[0]))
            head, dropped = b"", 0
            rows.append(None)
        else:
            rows.append(rest + parts[0])
        rows += parts[1:-1]
        rest = parts[-1]
        _take_out(rows, heads, max_bytes)
        yield Rows(rows, number, number, heads=heads)
        number += len(rows)
    if dropped:
        yield Rows([None], number, number, heads={0: (head, dropped)}, terminated=False)
    elif rest:
        last: list[bytes | None] = [rest]
        heads = {}
        _take_out(last, heads, max_bytes)
        yield Rows(last, number, number, heads=heads, terminated=False)


def _noting(items: Iterator[_T], unfinished: Callable[[], int]) -> Iterator[_T]:
    """The items; a stop among them is told how many bytes of a row were held."""
    try:
        yield from items
    except StoppedError as stopped:
        stopped.unfinished += unfinished()
        raise


def _take_out(rows: list[bytes | None], heads: dict[int, tuple[bytes, int]], max_bytes: int) -> None:
    if max(map(len, filter(None, rows)), default=0) <= max_bytes:
        return
    for index, row in enumerate(rows):
        if row is not None and len(row) > max_bytes:
            heads[index] = (row[:SHOWN_BYTES], len(row))
            rows[index] = None


def join_records(batches: Iterator[Rows], max_bytes: int, delimiter: bytes = b",") -> Iterator[Rows]:
    """CSV records of these lines: a line with an open quote goes on in the next one.

    A quote opens where a field begins, and nowhere else: `5" pipe` is a field like others. A record that
    outgrows the limit is given up there, and the next line begins a new one, so that a lost quote costs one.
    """
    number = 1
    open_lines: list[bytes] = []
    open_bytes = 0
    quoted = False
    start = 1
    for batch in _noting(batches, lambda: open_bytes):  # noqa: B023 (as it is then)
        rows: list[bytes | None] = []
        lines_of: list[int] = []
        heads: dict[int, tuple[bytes, int]] = {}
        for line, too_large in _with_heads(batch):
            open_lines.append(line)
            open_bytes += too_large or len(line) + 1
            if quoted or b'"' in line:
                quoted = _ends_quoted(line, quoted, delimiter)
            if quoted and not too_large and open_bytes <= max_bytes:
                continue
            record = open_lines[0] if len(open_lines) == 1 else b"\n".join(open_lines)
            if too_large or open_bytes > max_bytes + 1:
                heads[len(rows)] = (record[:SHOWN_BYTES], open_bytes - 1)
                rows.append(None)
            else:
                rows.append(record)
            lines_of.append(len(open_lines))
            open_lines, open_bytes, quoted = [], 0, False
        if rows:
            yield Rows(rows, number, start, lines_of, heads, batch.terminated or bool(open_lines))
            number += len(rows)
            start += sum(lines_of)
        ended = not batch.terminated
    if open_lines:
        yield Rows([b"\n".join(open_lines)], number, start, [len(open_lines)], terminated=not ended)


def _ends_quoted(line: bytes, quoted: bool, delimiter: bytes) -> bool:
    """Whether the line ends inside a quoted field; quoted: whether it began in one."""
    at = 0
    while True:
        if quoted:
            at = line.find(b'"', at)
            if at < 0:
                return True
            at += 1
            if line.startswith(b'"', at):
                at += 1
                continue
            quoted = False
        elif line.startswith(b'"', at):
            quoted = True
            at += 1
            continue
        at = line.find(delimiter, at) + 1
        if not at:
            return False


def _with_heads(batch: Rows) -> Iterator[tuple[bytes, int]]:
    """Each line with 0, or the head of one that is too large with its size and a newline."""
    for index, line in enumerate(batch.rows):
        if line is None:
            head, size = batch.heads[index]
            yield head, size + 1
        else:
            yield line, 0


_OUTSIDE = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
"""All up to the next bracket, or up to a text that has no end yet."""
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
"""The rest of a text, up to its quote or to a backslash with nothing behind it."""
_PLAIN = re.compile(rb'[^ \t\r\n,"\[\]{}]*+')
"""A number or a word."""
_SPACE = re.compile(rb"[ \t\r\n]*+")
_BREAK = re.compile(rb"[ \t]*[\r\n][ \t\r\n]*")
_QUOTE, _BACKSLASH, _COMMA, _OPENS, _CLOSES = b'"'[0], b"\\"[0], b","[0], b"[{", b"]}"


def holds_lines(head: bytes) -> bool:
    """Whether a file that begins so holds JSON lines: its first line is whole, and no array.

    head: whatever comes first; a first line longer than that counts as whole
    """
    first, newline, _ = head.lstrip(b" \t\r\n").partition(b"\n")
    if first.startswith(b"["):
        return False
    return not newline or not first or _Document(first[0]).end(first, 1) > 0


def one_line(row: bytes) -> bytes:
    r"""The document without its line breaks and indentation; between tokens they mean nothing.

    >>> one_line(b'{\n  "a": [1,\r\n 2]\n}')
    b'{"a": [1,2]}'
    """
    return _BREAK.sub(b"", row) if b"\n" in row or b"\r" in row else row


class _Document:
    """How far into a document what was seen so far goes; first: its first byte, which was seen."""

    def __init__(self, first: int) -> None:
        self._depth = 1 if first in _OPENS else 0
        self._in_text = first == _QUOTE
        self._is_plain = not self._depth and not self._in_text
        self._escaped = False

    def end(self, block: bytes, at: int) -> int:
        """Where it ends in the block, -1 if it goes on behind; at: where to go on."""
        if self._is_plain:
            found = _after(_PLAIN, block, at)
            return found if found < len(block) else -1
        while at < len(block):
            if self._escaped:
                self._escaped = False
                at += 1
            elif self._in_text:
                at = _after(_INSIDE, block, at)
                if at < len(block):
                    self._escaped = block[at] == _BACKSLASH
                    self._in_text = self._escaped
                    at += 1
                    if not self._in_text and not self._depth:
                        return at
            else:
                at = _after(_OUTSIDE, block, at)
                if at < len(block):
                    if block[at] == _QUOTE:
                        self._in_text = True
                    else:
                        self._depth += 1 if block[at] in _OPENS else -1
                    at += 1
                    if not self._depth and not self._in_text:
                        return at
        return -1

    @property
    def ends_with_the_file(self) -> bool:
        """A number needs nothing behind it."""
        return self._is_plain


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
        self._max_bytes = max_bytes
        self._shown = shown
        self._line = 1
        self._number = 1
        self._array_from = 0
        """Line in which the array begins that is open; 0: none is."""
        self._comma_due = self._just_opened = False
        self._document: _Document | None = None
        self._began = 1
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._rows: list[bytes | None] = []
        self._starts: list[int] = []
        self._heads: dict[int, tuple[bytes, int]] = {}

    def cut(self, block: bytes) -> Rows:
        """The rows that end in the block."""
        at = 0
        while True:
            document, start, seen = self._document, at, 0
            if document is None:
                document, start = self._between(block, at)
                if document is None:
                    return self._taken()
                self._document, seen = document, 1
            end = document.end(block, start + seen)
            stop = len(block) if end < 0 else end
            self._hold(block[start:stop])
            self._line += block.count(b"\n", start, stop)
            if end < 0:
                return self._taken()
            self._close()
            at = end

    def last(self) -> Rows:
        """What ends with the file. raises: FileError for what has no end"""
        if self._document is not None and self._document.ends_with_the_file:
            self._close()
        advice = "has no end; fetch the file again, or mend it"
        if self._document is not None:
            lines = "" if self._array_from else "; if it holds JSON lines, say --format jsonl"
            raise FileError(f"{self._shown}: the document that begins in line {self._began} {advice}{lines}")
        if self._array_from:
            raise FileError(f"{self._shown}: the array that begins in line {self._array_from} {advice}")
        return self._taken()

    def _between(self, block: bytes, at: int) -> tuple[_Document | None, int]:
        """The document that begins next, None if none does in this block; and where."""
        while True:
            start, at = at, _after(_SPACE, block, at)
            self._line += block.count(b"\n", start, at)
            if at == len(block):
                return None, at
            byte = block[at]
            if self._comma_due:
                if byte == _COMMA:
                    self._comma_due = False
                elif byte == _CLOSES[0]:
                    self._array_from, self._comma_due = 0, False
                else:
                    raise self._misplaced(byte, "a comma or the end of the array")
            elif byte == _OPENS[0] and not self._array_from:
                self._array_from, self._just_opened = self._line, True
            elif byte == _CLOSES[0] and self._just_opened:
                self._array_from, self._just_opened = 0, False
            elif byte == _COMMA or byte in _CLOSES:
                raise self._misplaced(byte, "a document")
            else:
                self._began = self._line
                self._just_opened = False
                return _Document(byte), at
            at += 1

    def _misplaced(self, byte: int, due: str) -> FileError:
        found = repr(chr(byte)) if byte < 0x80 else f"the byte 0x{byte:02x}"
        return FileError(f"{self._shown}:{self._line}: has {found} where {due} is due; mend it there")

    def _hold(self, piece: bytes) -> None:
        self._held_bytes += len(piece)
        if self._held_bytes > self._max_bytes:
            self._held = [b"".join([*self._held, piece[:SHOWN_BYTES]])[:SHOWN_BYTES]]
        else:
            self._held.append(piece)

    def _close(self) -> None:
        content = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        if self._held_bytes > self._max_bytes:
            self._heads[len(self._rows)] = (content, self._held_bytes)
            self._rows.append(None)
        else:
            self._rows.append(content)
        self._starts.append(self._began)
        self._document, self._held, self._held_bytes = None, [], 0
        self._comma_due = bool(self._array_from)

    def _taken(self) -> Rows:
        starts = self._starts
        rows = Rows(
            self._rows,
            self._number,
            starts[0] if starts else self._line,
            [after - before for before, after in zip(starts, [*starts[1:], self._line], strict=False)],
            self._heads,
        )
        self._number += len(self._rows)
        self._rows, self._starts, self._heads = [], [], {}
        return rows


def _after(pattern: re.Pattern[bytes], block: bytes, at: int) -> int:
    """Where a pattern that always matches, if only nothing, ends."""
    match = pattern.match(block, at)
    return at if match is None else match.end()
