"""What formats with rows of text have in common: encodings, limits, and rows with their exact bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, cast

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, UnreadableError
from twinsieve.pipeline.basics.made_ahead import made_ahead
from twinsieve.pipeline.files.encoding import Encoded, codec_of, encoding_named, is_wide, order_of
from twinsieve.pipeline.files.format import Format, Reader, RowChunk, Task, Writer
from twinsieve.pipeline.files.marks import RowMark
from twinsieve.pipeline.files.rows import Rows, split_lines
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.files.write import ByteSink, Output, RowWriter
from twinsieve.pipeline.messages.decode import Unreadable, decode_rows, too_large
from twinsieve.pipeline.messages.reader import MessageColumns
from twinsieve.stages.rows.lines import Lines

_BLOCKS_AHEAD = 2
_WORTH_A_THREAD = 1 << 20
"""Bytes of a file from which on another thread reads it, _BLOCKS_AHEAD blocks before they are needed."""


class TextFormat(Format):
    """A format with rows of text.

    encoding: name of a Python codec; None: UTF-8, and it is an error if the first bytes show another encoding
    """

    flags: ClassVar[tuple[str, ...]] = ("encoding",)

    def __init__(self, encoding: str | None = None) -> None:
        self.encoding = None if encoding is None else encoding_named(encoding)


class TextReader(Reader):
    """Reads rows of text; each line is a row, unless `split` says otherwise.

    encoding: as in `TextFormat`
    mark: byte order mark of the first input, b"" if it has none, None before that input
    delimiter: a row that contains it is not blank
    """

    delimiter = "\n"

    def __init__(self, encoding: str | None, task: Task) -> None:
        self.encoding = encoding
        self.row_codec = codec_of(encoding)
        self.codec = self.row_codec or "utf-8"
        self.messages = task.messages
        self.max_bytes = task.settings.input.max_bytes
        self.mark: bytes | None = None

    def rows(self, source: InputSource) -> Iterator[RowChunk]:
        nothing = self.messages.columns([], {})
        for rows in self.split(source):
            yield RowChunk(source.shown, rows, nothing)

    def split(self, source: InputSource) -> Iterator[Rows]:
        """The rows of an input. raises: FileError"""
        return split_lines(self.blocks(source), self.max_bytes)

    def blocks(self, source: InputSource) -> Iterator[bytes]:
        """The content of an input in blocks. raises: FileError"""
        blocks = source.blocks(self.encoding)
        # A stream is read when a block is asked for: others may wait for what was read before.
        if source.size is not None and source.size >= _WORTH_A_THREAD:
            blocks = made_ahead(blocks, _BLOCKS_AHEAD)
        for block in blocks:
            self.mark = source.mark if self.mark is None else self.mark
            yield block

    def check(self, source: InputSource) -> None:
        """Does nothing: these inputs show nothing before their rows."""

    def decoded(self, chunk: RowChunk) -> RowChunk:
        # Editors and `cat` may leave blank rows and headers, which hold no message. Removing them here,
        # before the rows are decoded, makes even many of them cheap.
        rows = cast(Rows, chunk.rows)
        filled = rows.filled(self.delimiter.encode())
        left_out = len(rows) - len(filled)
        columns = self.columns(rows.only(filled) if left_out else rows)
        if left_out:
            unreadable = [bad._replace(row=filled[bad.row]) for bad in columns.unreadable]
            no_text = [bad._replace(row=filled[bad.row]) for bad in columns.no_text]
            numbers = [filled[row] for row in columns.rows]
            columns = replace(columns, rows=numbers, unreadable=unreadable, no_text=no_text)
        headers = len(rows.repeats)
        return replace(chunk, columns=columns, blank=left_out - headers, headers=headers)

    def columns(self, rows: Rows) -> MessageColumns:
        """The messages in rows."""
        bad = self.too_large(rows)
        payloads = self.payloads(rows)
        if self.row_codec is not None:
            payloads = decode_rows(payloads, lambda row: self.text_of(row).encode(), bad)
        return self.messages.read(payloads, bad)

    def payloads(self, rows: Rows) -> Sequence[bytes | None]:
        """The message in each row, None for a row that is too large."""
        return rows.rows

    def too_large(self, rows: Rows) -> dict[int, Unreadable]:
        """The rows that exceed the limit, by index."""
        return {row: too_large(row, size, self.max_bytes) for row, (_, size) in rows.heads.items()}

    def text_of(self, raw: bytes | None) -> str:
        """The text of a row. raises: UnreadableError"""
        try:
            text = (raw or b"").decode(self.codec)
            if self.row_codec is not None:
                text.encode()  # Some encodings have bytes that decode to a lone surrogate; this refuses them.
        except UnicodeError as error:
            offset = error.start if isinstance(error, UnicodeDecodeError) else 0
            raise UnreadableError(
                DeadLetterReason.NOT_UTF8, f"is not {self.row_codec or 'UTF-8'} at byte {offset}"
            ) from error
        return text

    def writer(self, output: Output) -> Writer:
        return TextWriter(output, self)


class TextWriter(Writer):
    """Writes rows with their exact bytes. UTF-16 and UTF-32 are written as in the first input.

    header: a row to write before all others
    """

    def __init__(self, output: Output, reader: TextReader, header: bytes | None = None) -> None:
        self.reader = reader
        self.sink: ByteSink = output
        if reader.encoding is not None and is_wide(reader.encoding):
            mark = reader.mark or b""
            self.sink = Encoded(output, order_of(reader.encoding, mark), mark)
        self.lines = RowWriter(self.sink)
        if header is not None:
            self.lines.write([header])

    def write(self, chunk: RowChunk, rows: list[int]) -> None:
        all_rows = cast(Rows, chunk.rows)
        bare = not all_rows.terminated and bool(rows) and rows[-1] == len(all_rows) - 1
        self.lines.write(picked(all_rows, rows), bare=bare)

    def write_marked(self, chunk: RowChunk, marks: list[RowMark | None]) -> None:
        numbers = [row for row, mark in enumerate(marks) if mark is not None]
        rows = cast(Rows, chunk.rows)
        bad = {bad_row.row: bad_row.reason for bad_row in chunk.columns.unreadable}
        marked = list(rows.rows)
        for row in numbers:
            marked[row] = self.marked(chunk, row, marks[row] or RowMark(""), bad.get(row))
        self.write(replace(chunk, rows=replace(rows, rows=marked)), numbers)

    def marked(self, chunk: RowChunk, row: int, mark: RowMark, reason: DeadLetterReason | None) -> bytes:
        """The bytes of a row with its mark. reason: why it is unreadable, None for a readable row"""
        raise NotImplementedError

    def end(self) -> None:
        """Does nothing: nothing stands behind the last row."""

    def close(self) -> None:
        """Does nothing: nothing is held back."""


def picked(rows: Rows, numbers: list[int]) -> list[bytes]:
    """The rows with these indices (ascending); neighbours may be one piece with newlines."""
    if isinstance(rows.rows, Lines):
        return rows.rows.picked(numbers)
    return [row for number in numbers if (row := rows.rows[number]) is not None]
