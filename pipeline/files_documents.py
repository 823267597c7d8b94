"""JSON arrays, and JSON documents that span lines, as rows: cut where each ends, without being parsed.

Brackets are counted outside texts. A document may be broken inside: whoever reads the row finds that, as with
JSON lines. Nothing is held but the document that is open, and of one that is too large only its head.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from twinsieve.pipeline.files_rows import SHOWN_BYTES, Rows
from twinsieve.stages.errors import FileError

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
