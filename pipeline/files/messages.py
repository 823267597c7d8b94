"""Reads input files as chunks: the original bytes of some rows, and the messages in them as columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.basics.closest import closest
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.basics.made_ahead import made_ahead
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.encoding import codec_of, is_wide
from twinsieve.pipeline.files.format import TABLES, Dialect
from twinsieve.pipeline.files.rows import (
    Rows,
    holds_lines,
    join_records,
    split_documents,
    split_lines,
)
from twinsieve.pipeline.files.source import InputSource, is_stream
from twinsieve.pipeline.files.table import Table, TableKind, documents_of, shown_row
from twinsieve.pipeline.messages.decode import Unreadable, UnreadableError, decode_rows, too_large
from twinsieve.pipeline.messages.reader import MessageColumns, MessageReader
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_DELIMITERS = ("\t", ";", "|", ",")
_LIMIT_OF_CSV = Lock()
_BLOCKS_AHEAD = 2
_WORTH_A_THREAD = 1 << 20
"""Bytes of a file from which on another thread reads it, _BLOCKS_AHEAD blocks before they are needed."""


@dataclass(slots=True)
class RowChunk:
    """Consecutive rows of one input, and the messages that could be read from them.

    source: name of the input, as shown to the user
    rows: the rows with their bytes as in the file; a row's bytes are None if it is too large
    columns: the messages; they refer to rows by their index in `rows`
    blank: number of rows that contain only whitespace; these are neither messages nor unreadable rows
    batch: the rows as Arrow columns, for Parquet and Arrow inputs; every row in `rows` is then empty, and the
        line number is the row number
    """

    source: str
    rows: Rows
    columns: MessageColumns
    blank: int = 0
    batch: pa.RecordBatch | None = None
    _lines: NDArray[np.int64] | None = field(default=None, init=False, repr=False)

    def line_of(self, row: int) -> int:
        """Line number in the input where this row begins, from 1."""
        return int(self.lines()[row])

    def lines(self) -> NDArray[np.int64]:
        """int64[n]: line number in the input where each row begins, from 1."""
        if self._lines is None:
            count, spans = len(self.rows.rows), self.rows.lines_of
            before = np.arange(count) if spans is None else np.cumsum([0, *spans])[:count]
            self._lines = np.asarray(before + self.rows.line, np.int64)
        return self._lines

    def raw(self, row: int) -> tuple[bytes, int]:
        """The row's bytes (only the first ones if the row is too large), and its full size in bytes."""
        if self.batch is None:
            return self.rows.raw(row)
        shown = shown_row(self.batch, row)
        return shown, len(shown)


class InputReader:
    """Reads inputs one after the other.

    Most attributes are set when the first input is opened and describe that input. With `apart` they describe
    the input that was opened last.

    names: column names of CSV inputs
    header: bytes of the header row of CSV inputs, with the byte order mark before it; for UTF-16 and UTF-32
        the header as UTF-8, without the mark
    documents: for format json: True if the input is an array or has documents that span lines, False if it
        has JSON lines
    codec: name of the encoding of the rows in a chunk
    mark: the byte order mark, b"" if the input has none
    schema, table_kind, packing: columns, kind of file and compression of Parquet and Arrow inputs
    other_order: shown names of inputs whose columns have another order than those of the first input; their
        rows are returned with the columns in the order of the first input
    apart: the inputs are independent, so each may have other columns
    whole: read all columns of Parquet and Arrow inputs, not only those that are judged
    ids_shown: as in `MessageReader`
    """

    def __init__(
        self,
        settings: Settings,
        dialect: Dialect,
        *,
        whole: bool = False,
        ids_shown: bool = False,
        apart: bool = False,
    ) -> None:
        encoding = "text" if dialect.format == "text" else "json"
        source = settings.input.model_copy(update={"encoding": encoding})
        self._settings = settings.model_copy(update={"input": source})
        self.dialect = dialect
        self._format = dialect.format
        self._delimiter = dialect.delimiter
        self._codec = codec_of(dialect.encoding)
        self.codec = self._codec or "utf-8"
        self._reader = MessageReader(
            self._settings,
            flat=self._format == "csv",
            ids_shown=ids_shown,
            passes_null=settings.passes_null_text(on_files=True),
        )
        self._whole = whole
        self._apart = apart
        self.other_order: dict[str, None] = {}
        self._forget()

    def _forget(self) -> None:
        """Reset what was learned from the first input."""
        self.mark: bytes | None = None
        self.names: list[str] = []
        self.header: bytes | None = None
        self.documents: bool | None = None
        self.schema: pa.Schema | None = None
        self.table_kind: TableKind = "parquet"
        self.packing = ""
        self._first = ""
        self._order: list[int] | None = None

    def chunks(self, source: InputSource) -> Iterator[RowChunk]:
        """All rows of an input, in order.

        raises: FileError if the input cannot be read, or has other columns than the first input
        """
        return map(self.decoded, self.rows_alone(source))

    def decoded(self, chunk: RowChunk) -> RowChunk:
        """A chunk of `rows_alone` with its messages. The chunks of an input must come in order."""
        if chunk.batch is not None:
            columns = self._reader.columns(
                *documents_of(chunk.batch, self._reader.roots, self._settings.input.max_bytes)
            )
            return replace(chunk, columns=columns)
        # Editors and `cat` may leave blank rows, which hold no message. Removing them here, before the
        # rows are decoded, makes even many of them cheap.
        rows, filled = chunk.rows, chunk.rows.filled(self._delimiter.encode())
        blank = len(rows.rows) - len(filled)
        columns = self._columns(rows.only(filled) if blank else rows)
        if blank:
            unreadable = [bad._replace(row=filled[bad.row]) for bad in columns.unreadable]
            no_text = [bad._replace(row=filled[bad.row]) for bad in columns.no_text]
            numbers = [filled[row] for row in columns.rows]
            columns = replace(columns, rows=numbers, unreadable=unreadable, no_text=no_text)
        return replace(chunk, columns=columns, blank=blank)

    def _columns(self, rows: Rows) -> MessageColumns:
        """The messages in rows of CSV, JSON or text."""
        if self._format == "csv":
            bad = self._too_large(rows)
            return self._reader.columns(decode_rows(rows.rows, self._record, bad), bad)
        return self._reader.read(*self._payloads(rows))

    def rows_alone(self, source: InputSource) -> Iterator[RowChunk]:
        """The chunks of `chunks`, but without messages: the rows are not decoded. raises: as `chunks`"""
        if self._apart:
            self._forget()
        shown = source.shown
        nothing = self._reader.columns([], {})
        if self._format in TABLES:
            first = 1
            table = self._begin_table(source)
            names = self.schema.names if self.schema is not None and self._whole else None
            for batch in table.batches():
                batch = batch if names in (None, batch.schema.names) else batch.select(names)
                yield RowChunk(shown, Rows([b""] * batch.num_rows, first), nothing, batch=batch)
                first += batch.num_rows
            return
        if self._format == "csv":
            batches = self._without_header(source, self._records(source))
        else:
            batches = self._rows(self._blocks(source), shown)
        for rows in batches:
            yield RowChunk(shown, rows, nothing)

    def size_of(self, name: str) -> int | None:
        """The size of an input in bytes, None for a stream.

        Also checks that a file can be read, and that its columns are those of the first input. A stream is
        not checked, because its bytes can be read only once.
        raises: FileError, UsageError, as `chunks`
        """
        if is_stream(name):
            return None
        if self._apart:
            self._forget()
        with InputSource(name) as source:
            if self._format == "csv":
                self._begin(source, self._records(source))
            elif self._format in TABLES:
                self._begin_table(source)
            return source.size

    def _records(self, source: InputSource) -> Iterator[Rows]:
        limit = self._settings.input.max_bytes
        return join_records(split_lines(self._blocks(source), limit), limit, self._delimiter.encode())

    def _blocks(self, source: InputSource) -> Iterator[bytes]:
        blocks = source.blocks(self.dialect.encoding)
        # A stream is read when a block is asked for: others may wait for what was read before.
        if source.size is not None and source.size >= _WORTH_A_THREAD:
            blocks = made_ahead(blocks, _BLOCKS_AHEAD)
        for block in blocks:
            self.mark = source.mark if self.mark is None else self.mark
            yield block

    def _begin_table(self, source: InputSource) -> Table:
        """Open a Parquet or Arrow input, and check that its columns are those of the first input."""
        shown = source.shown
        only = None if self._whole else self._reader.roots
        table = source.table(parquet=self._format == "parquet", only=only)
        if self.schema is None:
            self.schema, self.table_kind, self.packing = table.schema, table.kind, table.packing
            self._first = shown
        elif not self.schema.equals(table.schema):
            self._refuse_other_columns(shown, list(self.schema), list(table.schema))
            self.other_order[shown] = None
        self._refuse_without_text(shown, table.schema.names)
        return table

    def _refuse_other_columns(self, where: str, first: Sequence[object], columns: Sequence[object]) -> None:
        """Refuse columns that differ from those of the first input, except in order. raises: FileError"""
        missing = [str(column) for column in first if column not in columns]
        added = [str(column) for column in columns if column not in first]
        if not missing and not added and len(first) == len(columns):
            return
        differ = [f"added: {_listed(added)}"] if added else []
        differ += [f"missing: {_listed(missing)}"] if missing else []
        raise FileError(
            f"{where}: has other columns than {self._first} ({'; '.join(differ)}); write each input to a "
            "file of its own with -o FOLDER/, or run them one after the other on one --state: both find "
            "duplicates across them"
        )

    def _refuse_without_text(self, where: str, names: list[str], header: str = "") -> None:
        wanted = self._reader.text_roots
        settings = self._settings
        if set(wanted) & set(names) or settings.exact.fields or not settings.input.expect_text:
            return
        text_fields = " or ".join(map(repr, wanted))
        other = _other_delimiter(header, wanted, names)
        if other is not None:
            delimiter = "tab" if other == "\t" else repr(other)
            advice = f"its columns look separated by {delimiter}: add --delimiter {delimiter}"
            raise UsageError(f"{where}: has no column {text_fields}; {advice}")
        listed = ", ".join(repr(name) for name in names[:20])
        meant = " or ".join(repr(close) for name in wanted if (close := closest(name, names)) is not None)
        advice = f"did you mean {meant}? " if meant else ""
        raise UsageError(
            f"{where}: has no column {text_fields} but {listed}; {advice}name one with --text-field; "
            "if the rows have no text, add --set input.expect_text=false"
        )

    def _rows(self, blocks: Iterator[bytes], shown: str) -> Iterator[Rows]:
        limit = self._settings.input.max_bytes
        if self._format == "json":
            head = next(blocks, b"")
            documents = not holds_lines(head)
            self.documents = documents if self.documents is None else self.documents
            blocks = chain([head], blocks)
            if documents and self._codec is not None:
                raise FileError(
                    f"{shown}: is not JSON lines, and only JSON lines can be read in {self._codec}; "
                    f"turn it into UTF-8 first, as with `iconv -f {self._codec}`"
                )
            if documents:
                return split_documents(blocks, limit, shown)
        return split_lines(blocks, limit)

    def _payloads(self, rows: Rows) -> tuple[Sequence[bytes | None], dict[int, Unreadable]]:
        """The rows as UTF-8 for the reader, and the unreadable rows (too large, or in a wrong encoding)."""
        bad = self._too_large(rows)
        payloads = rows.rows
        if self._codec is not None:
            payloads = decode_rows(payloads, lambda row: self._decoded(row).encode(), bad)
        if self._format == "text":
            payloads = [None if row is None else row.removesuffix(b"\r") for row in payloads]
        return payloads, bad

    def _too_large(self, rows: Rows) -> dict[int, Unreadable]:
        limit = self._settings.input.max_bytes
        return {row: too_large(row, size, limit) for row, (_, size) in rows.heads.items()}

    def _decoded(self, raw: bytes | None) -> str:
        try:
            text = (raw or b"").decode(self.codec)
            if self._codec is not None:
                text.encode()  # Some encodings have bytes that decode to a lone surrogate; this refuses them.
        except UnicodeError as error:
            offset = error.start if isinstance(error, UnicodeDecodeError) else 0
            raise UnreadableError(
                DeadLetterReason.NOT_UTF8, f"is not {self._codec or 'UTF-8'} at byte {offset}"
            ) from error
        return text

    def _begin(self, source: InputSource, batches: Iterator[Rows]) -> Rows | None:
        """The first rows of a CSV input, with its header, whose columns are checked against the first input.

        None if the input is empty or is only one empty line: it has no rows.
        """
        where = f"{source.shown}:1"
        self._order = None
        first = next(batches, None)
        if first is None or (len(first.rows) == 1 and first.rows[0] == b"" and next(batches, None) is None):
            return None
        if not first.rows[0]:
            problem = "has no header row; the first row of a CSV file names its columns"
            raise FileError(f"{source.shown}: {problem}")
        head = first.rows[0] or b""
        try:
            text = self._decoded(head)
        except UnreadableError:
            text = ""
        names = _csv_fields(text, self._delimiter)
        if names is None:
            raise FileError(f"{where}: is not a CSV header; the first row names the columns")
        if self.names and names != self.names:
            self._refuse_other_columns(where, self.names, names)
            self.other_order[source.shown] = None
            self._order = [names.index(name) for name in self.names]
        if len(set(names)) < len(names):
            raise FileError(f"{where}: names a column twice; rename one")
        self._refuse_without_text(where, names, text)
        self.names = self.names or names
        if self.header is None:
            self._first = source.shown
            self.header = head if is_wide(self.dialect.encoding) else source.mark + head
        return first

    def _without_header(self, source: InputSource, batches: Iterator[Rows]) -> Iterator[Rows]:
        first = self._begin(source, batches)
        if first is None:
            return
        spans = first.lines_of or [1] * len(first.rows)
        heads = {row - 1: head for row, head in first.heads.items()}
        rest = replace(
            first, rows=first.rows[1:], line=first.line + spans[0], lines_of=spans[1:], heads=heads
        )
        following = chain([rest] if rest.rows else [], batches)
        yield from following if self._order is None else map(self._in_order, following)

    def _in_order(self, batch: Rows) -> Rows:
        """The records with their columns in the order of the first input; each field keeps its exact bytes.

        A record that does not have as many fields as its header stays unchanged.
        """
        order = self._order or []

        def ordered(record: bytes | None) -> bytes | None:
            if record is None or not record.strip():
                return record
            body = record.removesuffix(b"\r")
            try:
                text = self._decoded(body)
            except UnreadableError:
                return record
            fields = _csv_fields(text, self._delimiter)
            spelt = _spelt_fields(text, self._delimiter)
            if fields is None or len(fields) != len(order) or len(spelt) != len(order):
                return record
            joined = self._delimiter.join([spelt[column] for column in order])
            return joined.encode(self.codec) + record[len(body) :]

        return replace(batch, rows=[ordered(record) for record in batch.rows])

    def _record(self, record: bytes | None) -> dict[str, str]:
        """The fields of a CSV record, by column name. raises: UnreadableError"""
        fields, width = _csv_fields(self._decoded(record), self._delimiter), len(self.names)
        if fields is None:
            problem = "is not a CSV record; a quote is not closed or followed by text"
            raise UnreadableError(DeadLetterReason.INVALID_CSV, problem)
        if len(fields) != width:
            raise UnreadableError(
                DeadLetterReason.INVALID_CSV, f"has {len(fields)} fields, the header {width}"
            )
        return dict(zip(self.names, fields, strict=True))


def _other_delimiter(head: str, wanted: Sequence[str], names: list[str]) -> str | None:
    """Another delimiter, if it clearly fits the header better; else None.

    head: the header row; wanted: names of text columns; names: columns read with the configured delimiter
    """
    for other in _DELIMITERS:
        columns = _csv_fields(head, other) or []
        if set(wanted) & set(columns) or len(columns) > len(names):
            return other
    return None


def _spelt_fields(record: str, delimiter: str) -> list[str]:
    """The fields of a valid CSV record exactly as written, with their quotes.

    >>> _spelt_fields('"a,""b",c "d,', ",")
    ['"a,""b"', 'c "d', '']
    """
    fields = []
    start = 0
    while True:
        end = start
        if record[start : start + 1] == '"':
            end = record.find('"', start + 1)
            while record[end + 1 : end + 2] == '"' and end >= 0:
                end = record.find('"', end + 2)
            if end < 0:
                return []
        end = record.find(delimiter, end)
        fields.append(record[start:] if end < 0 else record[start:end])
        if end < 0:
            return fields
        start = end + 1


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5:,} more"


def _csv_fields(record: str, delimiter: str) -> list[str] | None:
    """The fields of one record, or None if it is not valid CSV."""
    # The limit is global to the process, which may read other CSV, so the old limit is restored below.
    with _LIMIT_OF_CSV:
        limit = csv.field_size_limit(max(len(record), 1 << 17))
        try:
            records = list(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter, strict=True))
        except csv.Error:
            return None
        finally:
            csv.field_size_limit(limit)
    return records[0] if len(records) == 1 else None
