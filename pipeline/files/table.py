"""Reads and writes Parquet and Arrow files; only columns that are judged are converted to Python values."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.write import ByteSink
from twinsieve.pipeline.messages.decode import Unreadable, too_large
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.stages.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

TableKind = Literal["parquet", "arrow file", "arrow stream"]

_BATCH_ROWS = 8192
_GROUP_ROWS = 1 << 17
_GROUP_BYTES = 64 << 20
_ARROW_FILE = b"ARROW1"
_UNREADABLE = object()
_MILLIS = {"s": 1 / 1000, "ms": 1, "us": 1000, "ns": 1_000_000}
"""How many units of an Arrow timestamp make a millisecond."""


class Table:
    """An open Parquet or Arrow input.

    only: names of the columns to read, None for all
    kind: Parquet, or which of the two Arrow formats; packing: compression of the first Parquet column
    raises: FileError if it is not in that format, is damaged, or is a pipe and its format needs a file;
        UsageError if the package pyarrow is not installed
    """

    def __init__(self, raw: io.BufferedReader, shown: str, *, parquet: bool, only: set[str] | None) -> None:
        arrow = arrow_package()
        self._shown = shown
        self._errors = (arrow.ArrowException, OSError, ValueError, EOFError)
        self.kind: TableKind = "parquet"
        self.packing = "snappy"
        if not parquet:
            self.kind = "arrow file" if raw.peek(6)[:6] == _ARROW_FILE else "arrow stream"
        if self.kind != "arrow stream" and not raw.seekable():
            raise FileError(f"{shown}: Parquet and Arrow files are not read from a pipe; name the file")
        try:
            if self.kind == "parquet":
                from pyarrow import parquet as pq

                file = pq.ParquetFile(raw, buffer_size=1 << 20, pre_buffer=False)
                self.schema: pa.Schema = file.schema_arrow
                if file.num_row_groups and file.metadata.num_columns:
                    self.packing = file.metadata.row_group(0).column(0).compression.lower()
                # A nested column is read as a whole, by the name of its top-level column.
                columns = None if only is None else [name for name in self.schema.names if name in only]
                self._batches: Iterable[pa.RecordBatch] = file.iter_batches(_BATCH_ROWS, columns=columns)
            elif self.kind == "arrow file":
                opened = arrow.ipc.open_file(raw)
                self.schema = opened.schema
                self._batches = (opened.get_batch(number) for number in range(opened.num_record_batches))
            else:
                stream = arrow.ipc.open_stream(raw)
                self.schema = stream.schema
                self._batches = stream
        except self._errors as error:
            raise self._damaged(error) from error

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in order, in batches of up to _BATCH_ROWS rows. raises: FileError"""
        try:
            for batch in self._batches:
                for start in range(0, batch.num_rows, _BATCH_ROWS):
                    yield batch.slice(start, _BATCH_ROWS)
        except self._errors as error:
            raise self._damaged(error) from error

    def _damaged(self, error: BaseException) -> FileError:
        format_ = "Parquet" if self.kind == "parquet" else "Arrow"
        problem = str(error).partition("\n")[0] or type(error).__name__
        return FileError(
            f"{self._shown}: cannot be read as {format_} ({problem}); fetch it again, or add --format"
        )


def arrow_package() -> Any:
    """The package pyarrow. raises: UsageError if it is not installed"""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise UsageError(
            "Parquet and Arrow need the package pyarrow: pip install pyarrow, or in a checkout "
            "pip install '.[arrow]'"
        ) from error
    return pyarrow


def documents_of(
    batch: pa.RecordBatch, names: Iterable[str], max_bytes: int
) -> tuple[list[dict[str, Any] | None], dict[int, Unreadable]]:
    """The named columns of each row as a message (None for an unreadable row), and the unreadable rows.

    Values are converted to JSON types: strings and bytes in UTF-8 to text, other bytes to hex; numbers,
    booleans, lists and structs to the same type in JSON; timestamps and dates to seconds since 1970; any
    other value to its text.

    max_bytes: a row with a longer text in one column is unreadable
    """
    present = [name for name in batch.schema.names if name in set(names)]
    columns = [_values(batch.column(name)) for name in present]
    bad: dict[int, Unreadable] = {}
    for name, column in zip(present, columns, strict=True):
        for row, value in enumerate(column):
            if value is _UNREADABLE:
                bad.setdefault(
                    row, Unreadable(row, DeadLetterReason.NOT_UTF8, f"column {name!r} is not UTF-8")
                )
            elif isinstance(value, str) and len(value) * 4 > max_bytes:
                size = len(value.encode("utf-8", "surrogatepass"))
                if size > max_bytes:
                    bad.setdefault(row, too_large(row, size, max_bytes, f" in {name!r}"))
    if not columns:
        return [{} for _ in range(batch.num_rows)], bad
    rows = zip(*columns, strict=True)
    documents = [
        None if number in bad else dict(zip(present, row, strict=True)) for number, row in enumerate(rows)
    ]
    return documents, bad


def shown_row(batch: pa.RecordBatch, row: int) -> bytes:
    """All columns of one row as JSON; a text that is not UTF-8 is shown as hex."""
    shown = {}
    for name, column in zip(batch.schema.names, batch.slice(row, 1).columns, strict=True):
        (value,) = _values(column)
        if value is _UNREADABLE:
            try:
                value = column.cast("large_binary").to_pylist()[0].hex()
            except arrow_package().ArrowException:
                value = None
        shown[name] = value
    return to_json(shown)


def _values(column: pa.Array) -> list[Any]:
    types = arrow_package().types
    kind = column.type
    if types.is_dictionary(kind):
        entries = _values(column.dictionary)
        return [None if index is None else entries[index] for index in column.indices.to_pylist()]
    if types.is_timestamp(kind):
        units = column.cast("int64").to_pylist()
        return [None if unit is None else unit // _MILLIS[kind.unit] / 1000 for unit in units]
    if types.is_date(kind):
        days = column.cast("date32").cast("int32").to_pylist()
        return [None if day is None else day * 86400 for day in days]
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind):
        return list(column.to_pylist())
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):
        values = [_as_python(value) for value in column]
    if types.is_string(kind) or types.is_large_string(kind):
        return list(values)
    return [_plain(value) for value in values]


def _as_python(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return _UNREADABLE


def _plain(value: Any) -> Any:
    """The value as a JSON type: bytes as text, or hex if not UTF-8; a type that JSON lacks as its text."""
    if value is None or value is _UNREADABLE or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return str(value)


class _Sink(io.RawIOBase):
    """An output as a Python file object, which pyarrow needs to write to it."""

    def __init__(self, output: ByteSink) -> None:
        self._output: ByteSink | None = output
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        content = bytes(data)
        if self._output is not None:
            self._output.write(content)
        self._written += len(content)
        return len(content)

    def tell(self) -> int:
        return self._written

    def let_go(self) -> None:
        """Ignore all later writes."""
        self._output = None


class TableWriter:
    """Writes rows with the kind of file, columns and types of the input, and Parquet with its compression.

    A row group holds up to about 131,072 rows or 64 MiB.
    """

    def __init__(self, output: ByteSink, kind: TableKind, schema: pa.Schema, packing: str) -> None:
        self._arrow = arrow_package()
        self._schema = schema
        self._sink = sink = _Sink(output)
        if kind == "parquet":
            from pyarrow import parquet as pq

            self._writer: Any = pq.ParquetWriter(
                sink, schema, compression=None if packing == "uncompressed" else packing
            )
        else:
            make = self._arrow.ipc.new_file if kind == "arrow file" else self._arrow.ipc.new_stream
            self._writer = make(sink, schema)
        self._batches: list[pa.RecordBatch] = []
        self._batch_rows = self._batch_bytes = 0

    def write(self, batch: pa.RecordBatch, rows: list[int]) -> None:
        """Append these rows of a batch. raises: FileError"""
        if not rows:
            return
        # Not `array(rows)`: that imports pandas if it is installed, which takes a second.
        places = self._arrow.py_buffer(np.asarray(rows, np.int64))
        taken = batch.take(self._arrow.Array.from_buffers(self._arrow.int64(), len(rows), [None, places]))
        self._batches.append(taken)
        self._batch_rows += taken.num_rows
        self._batch_bytes += taken.nbytes
        if self._batch_rows >= _GROUP_ROWS or self._batch_bytes >= _GROUP_BYTES:
            self.flush()

    def end(self) -> None:
        """Write the buffered rows and the end of the file. raises: FileError"""
        self.flush()
        self._writer.close()

    def close(self) -> None:
        """Close the writer without writing the end of the file; may be called after `end`.

        The output is detached first, because a pyarrow writer writes the end of the file even when freed.
        """
        self._sink.let_go()
        self._writer.close()

    def flush(self) -> None:
        """Write the buffered rows. raises: FileError"""
        if self._batches:
            table = self._arrow.Table.from_batches(self._batches, self._schema)
            try:
                self._writer.write_table(table)
            except self._arrow.ArrowException as error:
                raise FileError(f"rows cannot be written as they came in ({error})") from error
        self._batches, self._batch_rows, self._batch_bytes = [], 0, 0
