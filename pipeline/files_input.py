"""Input files as chunks: the rows byte for byte, and the messages in them as columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from twinsieve.pipeline.batches import Columns, MessageReader, Unreadable
from twinsieve.pipeline.dead_letter_reasons import Reason
from twinsieve.pipeline.files_format import Format
from twinsieve.pipeline.files_read import BOM, STDIN, Source, is_stream
from twinsieve.pipeline.files_rows import Rows, join_records, split_lines
from twinsieve.pipeline.settings import Settings
from twinsieve.stages.errors import FileError, UsageError


@dataclass(slots=True)
class Chunk:
    """Consecutive rows of one input, and what could be read of them.

    rows: bytes as they stand in the file (None: too large); columns: the messages, by index into `rows`
    blank: how many rows hold nothing but blanks; they are neither messages nor unreadable
    """

    source: str
    rows: Rows
    columns: Columns
    blank: int = 0

    def line_of(self, row: int) -> int:
        """Line of the input that a row begins in, from 1."""
        spans = self.rows.lines_of
        return self.rows.line + (row if spans is None else sum(spans[:row]))

    def raw(self, row: int) -> tuple[bytes, int]:
        """The row's bytes, or the head of one that is too large; and its full size."""
        content = self.rows.rows[row]
        return (content, len(content)) if content is not None else self.rows.heads[row]


class InputReader:
    """Reads inputs one after the other.

    header: of CSV inputs, once the first one was begun: the bytes of its header row, with the byte order mark
        that stands before it
    """

    def __init__(self, settings: Settings, format_: Format) -> None:
        encoding = "text" if format_ == "text" else "json"
        source = settings.input.model_copy(update={"encoding": encoding})
        self._settings = settings.model_copy(update={"input": source})
        self._format = format_
        self._reader = MessageReader(self._settings, flat=format_ == "csv")
        self._columns: list[str] = []
        self.header: bytes | None = None

    def chunks(self, source: Source) -> Iterator[Chunk]:
        """Every row of an input in order; none is left out.

        raises: FileError when the input fails, or has other columns than the one before
        """
        shown = "stdin" if source.name == STDIN else source.name
        limit = self._settings.input.max_bytes
        lines = split_lines(source.blocks(), limit)
        if self._format == "csv":
            for rows in self._without_header(source, join_records(lines, limit)):
                yield _chunk(shown, rows, self._read_csv(rows))
            return
        for rows in lines:
            yield _chunk(shown, rows, _with_too_large(rows, self._reader.read(self._payloads(rows))))

    def look(self, name: str) -> int | None:
        """The size of an input, None for a stream; a file can be read and its columns fit when this returns.

        Streams are not touched: what is read of them is gone.
        raises: FileError, UsageError, as `chunks` does
        """
        if is_stream(name):
            return None
        with Source(name) as source:
            if self._format == "csv":
                limit = self._settings.input.max_bytes
                self._begin(source, next(join_records(split_lines(source.blocks(), limit), limit), None))
            return source.size

    def _payloads(self, rows: Rows) -> list[bytes | None]:
        if self._format == "text":
            return [None if row is None else row.removesuffix(b"\r") for row in rows.rows]
        return rows.rows

    def _begin(self, source: Source, first: Rows | None) -> Rows:
        """The first rows of a CSV input; its header is known and fits the inputs before."""
        shown = "stdin" if source.name == STDIN else source.name
        if first is None or first.rows == [b""]:
            raise FileError(f"{shown}: has no header row; the first row of a CSV file names its columns")
        head = first.rows[0]
        names = _csv_fields(head) if head is not None else None
        if names is None:
            raise FileError(f"{shown}:1: is no CSV header; the first row names the columns")
        self._accept(shown, names)
        if self.header is None and head is not None:
            self.header = (BOM if source.marked else b"") + head
        return first

    def _without_header(self, source: Source, batches: Iterator[Rows]) -> Iterator[Rows]:
        first = self._begin(source, next(batches, None))
        skipped = first.lines_of[0] if first.lines_of else 1
        rest = Rows(
            first.rows[1:],
            1,
            first.line + skipped,
            first.lines_of[1:] if first.lines_of else None,
            {row - 1: head for row, head in first.heads.items()},
            first.terminated,
        )
        if rest.rows:
            yield rest
        for rows in batches:
            yield replace(rows, first=rows.first - 1)

    def _accept(self, shown: str, names: list[str]) -> None:
        if self._columns and names != self._columns:
            raise FileError(f"{shown}:1: has other columns than the input before; run it on its own")
        if len(set(names)) < len(names):
            raise FileError(f"{shown}:1: names a column twice; rename one")
        wanted = self._settings.input.text_field
        if wanted not in names and not self._settings.exact.fields:
            listed = ", ".join(repr(name) for name in names[:20])
            raise UsageError(f"{shown}:1: has no column {wanted!r} but {listed}; name one with --text-field")
        self._columns = names

    def _read_csv(self, rows: Rows) -> Columns:
        documents: list[Any] = []
        unreadable: list[Unreadable] = []
        width = len(self._columns)
        for row, record in enumerate(rows.rows):
            fields = None if record is None else _csv_fields(record)
            problem = None
            if record is None:
                problem = _too_large(rows, row)
            elif not record.strip():
                problem = Unreadable(row, Reason.EMPTY, "is empty")
            elif fields is None:
                problem = _no_csv(row, record)
            elif len(fields) != width:
                problem = Unreadable(row, Reason.INVALID_CSV, f"has {len(fields)} fields, the header {width}")
            if problem is not None or fields is None:
                documents.append(None)
                unreadable += [problem] if problem is not None else []
            else:
                documents.append(dict(zip(self._columns, fields, strict=True)))
        return self._reader.columns(documents, unreadable)


def _chunk(source: str, rows: Rows, columns: Columns) -> Chunk:
    """The chunk, its blank rows passed over: editors and `cat` leave some, and none holds a message."""
    unreadable = [bad for bad in columns.unreadable if bad.reason is not Reason.EMPTY]
    blank = len(columns.unreadable) - len(unreadable)
    return Chunk(source, rows, replace(columns, unreadable=unreadable), blank)


def _too_large(rows: Rows, row: int) -> Unreadable:
    return Unreadable(row, Reason.TOO_LARGE, f"has {rows.heads[row][1]} bytes, more than input.max_bytes")


def _with_too_large(rows: Rows, columns: Columns) -> Columns:
    if not rows.heads:
        return columns
    unreadable = [_too_large(rows, bad.row) if bad.row in rows.heads else bad for bad in columns.unreadable]
    return replace(columns, unreadable=unreadable)


def _csv_fields(record: bytes) -> list[str] | None:
    """Fields of one record, or None where it is no CSV or no UTF-8."""
    try:
        text = record.decode()
        csv.field_size_limit(max(len(text), 1 << 17))
        found = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    return found[0] if len(found) == 1 else None


def _no_csv(row: int, record: bytes) -> Unreadable:
    try:
        record.decode()
    except UnicodeDecodeError as error:
        return Unreadable(row, Reason.NOT_UTF8, f"is not UTF-8 at byte {error.start}")
    return Unreadable(row, Reason.INVALID_CSV, "is no CSV record; a quote is not closed or followed by text")
