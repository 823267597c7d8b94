"""Input files as chunks: the rows byte for byte, and the messages in them as columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.encoding import codec_of, is_wide
from twinsieve.pipeline.files.format import TABLES, Dialect, Format
from twinsieve.pipeline.files.rows import Rows, holds_lines, join_records, split_documents, split_lines
from twinsieve.pipeline.files.source import InputSource, is_stream
from twinsieve.pipeline.files.table import Table, TableKind, documents_of, shown_row
from twinsieve.pipeline.messages.paths import path_of
from twinsieve.pipeline.messages.reader import MessageColumns, MessageReader, Unreadable
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.dead_letter_reasons import Reason
from twinsieve.stages.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_DELIMITERS = ("\t", ";", "|", ",")


@dataclass(slots=True)
class RowChunk:
    """Consecutive rows of one input, and what could be read of them.

    rows: bytes as they stand in the file (None: too large); columns: the messages, by index into `rows`
    blank: how many rows hold nothing but blanks; they are neither messages nor unreadable
    batch: of Parquet and Arrow the rows as columns; their `rows` are empty, and a line is a row
    """

    source: str
    rows: Rows
    columns: MessageColumns
    blank: int = 0
    batch: pa.RecordBatch | None = None

    def line_of(self, row: int) -> int:
        """Line of the input that a row begins in, from 1."""
        spans = self.rows.lines_of
        return self.rows.line + (row if spans is None else sum(spans[:row]))

    def raw(self, row: int) -> tuple[bytes, int]:
        """The row's bytes, or the head of one that is too large; and its full size."""
        if self.batch is not None:
            shown = shown_row(self.batch, row)
            return shown, len(shown)
        content = self.rows.rows[row]
        return (content, len(content)) if content is not None else self.rows.heads[row]


class InputReader:
    """Reads inputs one after the other.

    header: of CSV inputs, once the first one was begun: the bytes of its header row, with the byte order mark
        that stands before it (of UTF-16 and UTF-32: as UTF-8, without the mark)
    documents: of JSON inputs, once the first one was begun: whether it is an array, or documents that span
        lines, and no JSON lines
    encoding: as of `Dialect`; codec: that rows of a chunk are decoded by
    mark: the byte order mark of the first input, once it was begun
    schema, table_kind, packing: of Parquet and Arrow inputs, once the first one was begun
    whole: all columns of those are read, not only what is judged
    ids_shown: as of `MessageReader`
    """

    def __init__(
        self,
        settings: Settings,
        format_: Format,
        dialect: Dialect,
        *,
        whole: bool = False,
        ids_shown: bool = False,
    ) -> None:
        encoding = "text" if format_ == "text" else "json"
        source = settings.input.model_copy(update={"encoding": encoding})
        self._settings = settings.model_copy(update={"input": source})
        self._format = format_
        self._delimiter = dialect.delimiter
        self.encoding = dialect.encoding
        self.mark: bytes | None = None
        self._codec = codec_of(dialect.encoding)
        self.codec = self._codec or "utf-8"
        self._reader = MessageReader(self._settings, flat=format_ == "csv", ids_shown=ids_shown)
        self._columns: list[str] = []
        self.header: bytes | None = None
        self.documents: bool | None = None
        self._whole = whole
        self.schema: pa.Schema | None = None
        self.table_kind: TableKind = "parquet"
        self.packing = ""

    @property
    def names(self) -> list[str]:
        """Names of the columns of CSV inputs, once the first one was begun."""
        return self._columns

    def chunks(self, source: InputSource) -> Iterator[RowChunk]:
        """Every row of an input in order; none is left out.

        raises: FileError when the input fails, or has other columns than the one before
        """
        for chunk in self.rows_alone(source):
            if chunk.batch is not None:
                found = documents_of(chunk.batch, self._reader.roots, self._settings.input.max_bytes)
                yield replace(chunk, columns=self._reader.columns(*found))
            elif self._format == "csv":
                yield _read(chunk, self._read_csv(chunk.rows))
            else:
                payloads, foreign = self._payloads(chunk.rows)
                yield _read(chunk, _corrected(chunk.rows, self._reader.read(payloads), foreign))

    def rows_alone(self, source: InputSource) -> Iterator[RowChunk]:
        """The same chunks, with nothing read of their rows. raises: as `chunks`"""
        shown = source.shown
        nothing = self._reader.columns([], [])
        if self._format in TABLES:
            first = 1
            for batch in self._begin_table(source).batches():
                yield RowChunk(shown, Rows([b""] * batch.num_rows, first, first), nothing, batch=batch)
                first += batch.num_rows
            return
        if self._format == "csv":
            batches = self._without_header(source, self._records(source))
        else:
            batches = self._rows(self._blocks(source), shown)
        for rows in batches:
            yield RowChunk(shown, rows, nothing)

    def size_of(self, name: str) -> int | None:
        """The size of an input, None for a stream; checks that a file can be read and that its columns fit.

        Streams are not touched: what is read of them is gone.
        raises: FileError, UsageError, as `chunks` does
        """
        if is_stream(name):
            return None
        with InputSource(name) as source:
            if self._format == "csv":
                self._begin(source, next(self._records(source), None))
            elif self._format in TABLES:
                self._begin_table(source)
            return source.size

    def _records(self, source: InputSource) -> Iterator[Rows]:
        limit = self._settings.input.max_bytes
        return join_records(split_lines(self._blocks(source), limit), limit, self._delimiter.encode())

    def _blocks(self, source: InputSource) -> Iterator[bytes]:
        for block in source.blocks(self.encoding):
            self.mark = source.mark if self.mark is None else self.mark
            yield block

    def _begin_table(self, source: InputSource) -> Table:
        """The table of an input; its columns are known and fit the inputs before."""
        shown = source.shown
        only = None if self._whole else self._reader.roots
        table = source.table(parquet=self._format == "parquet", only=only)
        if self.schema is None:
            self.schema, self.table_kind, self.packing = table.schema, table.kind, table.packing
        elif not self.schema.equals(table.schema):
            raise FileError(f"{shown}: has other columns than the input before; run it on its own")
        self._refuse_without_text(shown, table.schema.names)
        return table

    def _refuse_without_text(self, where: str, names: list[str]) -> None:
        wanted = [str(path_of(name)[0]) for name in self._settings.input.text_field]
        if not set(wanted) & set(names) and not self._settings.exact.fields:
            listed = ", ".join(repr(name) for name in names[:20])
            asked = " or ".join(map(repr, wanted))
            raise UsageError(f"{where}: has no column {asked} but {listed}; name one with --text-field")

    def _rows(self, blocks: Iterator[bytes], shown: str) -> Iterator[Rows]:
        limit = self._settings.input.max_bytes
        if self._format == "json":
            head = next(blocks, b"")
            documents = not holds_lines(head)
            self.documents = documents if self.documents is None else self.documents
            blocks = chain([head], blocks)
            if documents and self._codec is not None:
                raise FileError(
                    f"{shown}: is no JSON lines, and other JSON is not read in {self._codec}; "
                    f"turn it into UTF-8 first, as with `iconv -f {self._codec}`"
                )
            if documents:
                return split_documents(blocks, limit, shown)
        return split_lines(blocks, limit)

    def _payloads(self, rows: Rows) -> tuple[list[bytes | None], dict[int, Unreadable]]:
        """What is read of the rows, in UTF-8, and those that are not in the encoding they should be in."""
        payloads = rows.rows
        foreign: dict[int, Unreadable] = {}
        if self._codec is not None:
            payloads = list(payloads)
            for row, raw in enumerate(payloads):
                text = None if raw is None else self._decoded(row, raw)
                if isinstance(text, Unreadable):
                    foreign[row] = text
                payloads[row] = text.encode() if isinstance(text, str) else None
        if self._format == "text":
            payloads = [None if row is None else row.removesuffix(b"\r") for row in payloads]
        return payloads, foreign

    def _decoded(self, row: int, raw: bytes) -> str | Unreadable:
        try:
            text = raw.decode(self.codec)
            if self._codec is not None:
                text.encode()  # Some encodings have bytes that decode to a half of a character.
        except UnicodeError as error:
            at = error.start if isinstance(error, UnicodeDecodeError) else 0
            return Unreadable(row, Reason.NOT_UTF8, f"is not {self._codec or 'UTF-8'} at byte {at}")
        return text

    def _begin(self, source: InputSource, first: Rows | None) -> Rows:
        """The first rows of a CSV input; its header is known and fits the inputs before."""
        shown = source.shown
        if first is None or first.rows == [b""]:
            raise FileError(f"{shown}: has no header row; the first row of a CSV file names its columns")
        head = first.rows[0]
        text = self._decoded(0, head) if head is not None else None
        names = _csv_fields(text, self._delimiter) if isinstance(text, str) else None
        if names is None or not isinstance(text, str):
            raise FileError(f"{shown}:1: is no CSV header; the first row names the columns")
        self._accept(shown, names, text)
        if self.header is None and head is not None:
            self.header = head if is_wide(self.encoding) else source.mark + head
        return first

    def _without_header(self, source: InputSource, batches: Iterator[Rows]) -> Iterator[Rows]:
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

    def _accept(self, shown: str, names: list[str], head: str) -> None:
        if self._columns and names != self._columns:
            raise FileError(f"{shown}:1: has other columns than the input before; run it on its own")
        if len(set(names)) < len(names):
            raise FileError(f"{shown}:1: names a column twice; rename one")
        wanted = self._settings.input.text_field
        if not set(wanted) & set(names) and not self._settings.exact.fields:
            asked = " or ".join(map(repr, wanted))
            other = _other_delimiter(head, wanted, names)
            if other is not None:
                said = "tab" if other == "\t" else repr(other)
                raise UsageError(
                    f"{shown}:1: has no column {asked}; its columns look separated by {said}: "
                    f"add --delimiter {said}"
                )
            listed = ", ".join(repr(name) for name in names[:20])
            raise UsageError(f"{shown}:1: has no column {asked} but {listed}; name one with --text-field")
        self._columns = names

    def _read_csv(self, rows: Rows) -> MessageColumns:
        documents: list[Any] = []
        unreadable: list[Unreadable] = []
        for row, record in enumerate(rows.rows):
            fields = _too_large(rows, row) if record is None else self._fields(row, record)
            if isinstance(fields, Unreadable):
                documents.append(None)
                unreadable.append(fields)
            else:
                documents.append(dict(zip(self._columns, fields, strict=True)))
        return self._reader.columns(documents, unreadable)

    def _fields(self, row: int, record: bytes) -> list[str] | Unreadable:
        if not record.strip() and self._delimiter.encode() not in record:
            return Unreadable(row, Reason.EMPTY, "is empty")
        text = self._decoded(row, record)
        if isinstance(text, Unreadable):
            return text
        fields, width = _csv_fields(text, self._delimiter), len(self._columns)
        if fields is None:
            problem = "is no CSV record; a quote is not closed or followed by text"
            return Unreadable(row, Reason.INVALID_CSV, problem)
        if len(fields) != width:
            return Unreadable(row, Reason.INVALID_CSV, f"has {len(fields)} fields, the header {width}")
        return fields


def _read(chunk: RowChunk, columns: MessageColumns) -> RowChunk:
    """The chunk with its columns, its blank rows passed over.

    Editors and `cat` leave some, and none holds a message.
    """
    unreadable = [bad for bad in columns.unreadable if bad.reason is not Reason.EMPTY]
    blank = len(columns.unreadable) - len(unreadable)
    return replace(chunk, columns=replace(columns, unreadable=unreadable), blank=blank)


def _too_large(rows: Rows, row: int) -> Unreadable:
    return Unreadable(row, Reason.TOO_LARGE, f"has {rows.heads[row][1]} bytes, more than input.max_bytes")


def _corrected(rows: Rows, columns: MessageColumns, foreign: dict[int, Unreadable]) -> MessageColumns:
    """The columns, with the true reasons of rows that were not read because they are too large or foreign."""
    if not rows.heads and not foreign:
        return columns
    unreadable = [
        _too_large(rows, bad.row) if bad.row in rows.heads else foreign.get(bad.row, bad)
        for bad in columns.unreadable
    ]
    return replace(columns, unreadable=unreadable)


def _other_delimiter(head: str, wanted: Sequence[str], names: list[str]) -> str | None:
    """What the columns of a header seem to be separated by, if that is plain; names: as it was read."""
    for other in _DELIMITERS:
        found = _csv_fields(head, other) or []
        if set(wanted) & set(found) or len(found) > len(names):
            return other
    return None


def _csv_fields(record: str, delimiter: str) -> list[str] | None:
    """Fields of one record, or None where it is no CSV."""
    # The limit holds for the whole process, which may read other CSV.
    limit = csv.field_size_limit(max(len(record), 1 << 17))
    try:
        found = list(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    finally:
        csv.field_size_limit(limit)
    return found[0] if len(found) == 1 else None
