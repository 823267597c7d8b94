"""JSON documents: arrays, documents behind each other and documents that span lines; also JSON lines.

Rows are the elements of arrays, and the documents outside arrays. If the output is named .json, they become
one array; otherwise each becomes one line, without its line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import cast

from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.endings import ending_of
from twinsieve.pipeline.files.format import RowChunk, Task, Writer
from twinsieve.pipeline.files.formats.json_elements import as_written
from twinsieve.pipeline.files.formats.json_ends import SPACE, OpenDocument, after
from twinsieve.pipeline.files.formats.json_lines import JsonLines, JsonReader, JsonWriter
from twinsieve.pipeline.files.formats.text_rows import TextFormat, TextReader
from twinsieve.pipeline.files.rows import GrowingRows, OpenRow, Rows, split_lines
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.files.write import Output
from twinsieve.pipeline.messages.spelling import without_escapes
from twinsieve.stages.rows.lines import Lines


class JsonDocuments(TextFormat):
    """JSON."""

    name = "json"
    title = "JSON"
    endings = (".json",)
    includes = (JsonLines.name,)
    cuts_lists = True

    def reader(self, task: Task) -> TextReader:
        """A new reader."""
        return _DocumentReader(self.encoding, task)


class _DocumentReader(JsonReader):
    """Reads JSON documents or JSON lines; a line may hold several documents.

    spans: whether the first input has documents, not lines; None before that input
    """

    spans: bool | None = None

    def split(self, source: InputSource) -> Iterator[Rows]:
        blocks = self.blocks(source)
        head = next(blocks, b"")
        spans = not holds_lines(head)
        self.spans = spans if self.spans is None else self.spans
        blocks = chain([head], blocks)
        if not spans:
            rows = split_lines(blocks, self.max_bytes)
            return rows if self.row_codec is not None else map(unglued, rows)
        if self.row_codec is not None:
            raise FileError(
                f"{source.shown}: is not JSON lines, and only JSON lines can be read in {self.row_codec}; "
                f"turn it into UTF-8 first, as with `iconv -f {self.row_codec}`"
            )
        return split_documents(blocks, self.max_bytes, source.shown)

    def writer(self, output: Output) -> Writer:
        is_array = self.spans and ending_of(output.name) in JsonDocuments.endings
        return (_ArrayWriter if is_array else _LinesWriter)(output, self)


class _LinesWriter(JsonWriter):
    """Writes each document as one line. JSON lines pass unchanged, unless the first input has documents."""

    def __init__(self, output: Output, reader: _DocumentReader) -> None:
        super().__init__(output, reader)
        self._spans = bool(reader.spans)

    def write(self, chunk: RowChunk, rows: list[int]) -> None:
        chunk, rows = as_written(chunk, rows)
        if self._spans or cast(Rows, chunk.rows).lines_of is not None:
            self.lines.write([one_line(row) for row in _documents(chunk, rows)])
        else:
            super().write(chunk, rows)


class _ArrayWriter(JsonWriter):
    """Writes documents as the elements of one array."""

    def __init__(self, output: Output, reader: _DocumentReader) -> None:
        super().__init__(output, reader)
        self.sink.write(b"[")
        self._any = False

    def write(self, chunk: RowChunk, rows: list[int]) -> None:
        chunk, rows = as_written(chunk, rows)
        # A document that spans lines gets the indentation of its first line back, so that it looks as in the
        # input.
        elements = [indent_of(row) + row for row in _documents(chunk, rows)]
        if elements:
            self.sink.write((b",\n" if self._any else b"\n") + b",\n".join(elements))
            self._any = True

    def end(self) -> None:
        self.sink.write(b"\n]\n" if self._any else b"]\n")


def _documents(chunk: RowChunk, numbers: list[int]) -> list[bytes]:
    """The rows with these indices, each for itself."""
    rows = cast(Rows, chunk.rows).rows
    return [row for number in numbers if (row := rows[number]) is not None]


_BREAK = re.compile(rb"(?<![ \t])[ \t]*[\r\n][ \t\r\n]*")
"""A line break with the blanks around it. The lookbehind makes a match begin at the first blank only;
otherwise the search would start again at each of very many blanks."""
_PIECE_BYTES = 1 << 16
_COMMA, _OPENS, _CLOSES = b","[0], b"[{", b"]}"


def holds_lines(head: bytes) -> bool:
    """Whether a file that begins with `head` holds JSON lines.

    It does if its first line is a whole document and not an array.

    head: the first bytes of the file; if the first line is longer than these, it counts as whole
    """
    first, newline, _ = head.lstrip(b" \t\r\n").partition(b"\n")
    if first.startswith(b"["):
        return False
    plain = without_escapes(first)
    end = OpenDocument(first[0]).end(plain, 1) if first else 0
    # Of a file that is one line of documents no line would ever end.
    if _next_document(plain, end) is not None:
        return False
    return not newline or not first or end > 0


def unglued(rows: Rows) -> Rows:
    r"""The lines, cut where an object begins behind the end of another one.

    Lines that hold one document or none pass as they are.

    >>> unglued(Rows([b'{"a": 1}{"a": "}{"} {', b'[1] 2'], 7)).rows
    [b'{"a": 1}', b'{"a": "}{"}', b'{', b'[1] 2']
    """
    content = rows.rows.piece() if isinstance(rows.rows, Lines) else b"\n".join(filter(None, rows.rows))
    if _GLUED.search(content) is None:
        return rows
    cut = GrowingRows([], rows.line, terminated=rows.terminated)
    spans: list[int] = []
    for number, row in enumerate(rows.rows):
        if row is None:
            head, size = rows.heads[number]
            cut.add(head, size, 0)
        else:
            for document in _documents_in(row):
                cut.add(document, len(document), len(document))
                spans.append(0)
            spans.pop()
        spans.append(1)
    cut.lines_of = spans
    return cut


def _documents_in(row: bytes) -> Iterator[bytes]:
    """The documents of a line; what stands behind the last object that another one follows is one of them."""
    plain, start = without_escapes(row), 0
    while row.startswith(b"{", start):
        end = OpenDocument(_OPENS[1]).end(plain, start + 1)
        following = _next_document(plain, end)
        if following is None:
            break
        yield row[start:end]
        start = following
    yield row[start:]


def _next_document(plain: bytes, end: int) -> int | None:
    """Where another object begins directly behind the end of a document; None if none does."""
    position = after(SPACE, plain, end) if end > 0 else len(plain)
    return position if plain.startswith(b"{", position) else None


_GLUED = re.compile(rb"\}[ \t]*\{")
"""Occurs in every line that holds two objects, and in some strings."""


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
        self._document: OpenDocument | None = None
        self._began = 1
        self._row = OpenRow(max_bytes)
        self._rows = GrowingRows([], 1)
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

    def _between(self, block: bytes, plain: bytes, position: int) -> tuple[OpenDocument | None, int]:
        """The next document that begins in this block (None if none does), and its position.

        Checks the commas and array brackets before it.
        plain: the block without escapes
        raises: FileError for a misplaced byte
        """
        while True:
            start, position = position, after(SPACE, plain, position)
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
                return OpenDocument(byte), position
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
        self._rows, self._starts = GrowingRows([], 1), []
        return rows
