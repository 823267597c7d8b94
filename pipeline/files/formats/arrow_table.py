"""What formats with columns have in common: rows are Arrow columns; only judged ones become Python values."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.format import Format, Reader, RowChunk, Task, Writer
from twinsieve.pipeline.files.input_columns import Columns
from twinsieve.pipeline.files.marks import NAME, RowMark, name_taken
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.files.write import ByteSink, Output, PythonFile
from twinsieve.pipeline.messages.decode import Unreadable, too_large
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.stages.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 8192
_GROUP_ROWS = 1 << 17
_GROUP_BYTES = 64 << 20
_UNREADABLE = object()
_MILLIS = {"s": 1 / 1000, "ms": 1, "us": 1000, "ns": 1_000_000}
"""How many units of an Arrow timestamp make a millisecond."""


class Table(NamedTuple):
    """An open table.

    batches: its rows in order
    new: makes pyarrow's writer of a file of the same kind, of a Python file object and a schema
    flows: rows of such a file can be read before its end is written
    """

    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]
    new: Callable[[io.RawIOBase, pa.Schema], Any]
    flows: bool = False


class TableFormat(Format):
    """A format with columns, which compresses inside."""

    packs = False
    streams = False

    @abstractmethod
    def table(self, raw: io.BufferedReader, shown: str, only: set[str] | None) -> Table:
        """The content of an input.

        only: names of the columns to read, if others can be left out; None for all
        raises: what pyarrow raises if it is damaged; FileError if it is a pipe and the format needs a file
        """

    def reader(self, task: Task) -> Reader:
        return _TableReader(self, task)

    def refuse_pipe(self, raw: io.BufferedReader, shown: str) -> None:
        """Refuse an input that is a pipe. raises: FileError"""
        if not raw.seekable():
            raise FileError(f"{shown}: {self.title} files are not read from a pipe; name the file")


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of a table. first: number of the first one in the input, from 1"""

    batch: pa.RecordBatch
    first: int

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def lines(self) -> NDArray[np.int64]:
        return np.arange(self.first, self.first + len(self))

    def raw(self, row: int) -> tuple[bytes, int]:
        shown = shown_row(self.batch, row)
        return shown, len(shown)

    def advice(self, _bad: Unreadable) -> str | None:
        return None

    def elements(self) -> None:
        return None


class _TableReader(Reader):
    """Reads tables. like: the first input, None before it"""

    def __init__(self, format_: TableFormat, task: Task) -> None:
        self._format = format_
        self._messages = task.messages
        self._max_bytes = task.settings.input.max_bytes
        self._only = None if task.whole else task.messages.roots
        self._marks = task.marks
        self._columns = Columns(task.messages, task.settings)
        self.other_order = self._columns.other_order
        self._like: Table | None = None
        self._shown = ""

    def rows(self, source: InputSource) -> Iterator[RowChunk]:
        nothing, first = self._messages.columns([], {}), 1
        table, order = self._open(source)
        try:
            for whole in table.batches:
                for start in range(0, whole.num_rows, BATCH_ROWS):
                    batch = whole.slice(start, BATCH_ROWS)
                    batch = batch if order is None or self._only is not None else batch.select(order)
                    yield RowChunk(source.shown, TableRows(batch, first), nothing)
                    first += batch.num_rows
        except _errors() as error:
            raise self._damaged(source.shown, error) from error

    def decoded(self, chunk: RowChunk) -> RowChunk:
        batch = cast(TableRows, chunk.rows).batch
        documents, bad = documents_of(batch, self._messages.roots, self._max_bytes)
        return replace(chunk, columns=self._messages.columns(documents, bad))

    def check(self, source: InputSource) -> None:
        self._open(source)

    def writer(self, output: Output) -> Writer:
        like = self._like
        assert like is not None, "an input was opened"
        schema = like.schema
        if self._marks and NAME in schema.names:
            raise name_taken(self._shown, "a column")
        schema = schema.append(_struct()) if self._marks else schema
        writer = TableWriter(output, like.new, schema)
        return _KeptTable(writer, flushes=output.is_stream and like.flows)

    def _open(self, source: InputSource) -> tuple[Table, list[int] | None]:
        """The table of an input, and the order of its columns in the first input (`Columns.order_of`)."""
        shown = source.shown
        arrow_package()
        try:
            table = self._format.table(source.raw, shown, self._only)
        except _errors() as error:
            raise self._damaged(shown, error) from error
        order = self._columns.order_of(shown, list(table.schema), shown)
        if self._like is None:
            self._like, self._shown = table, shown
        self._columns.refuse_twice(shown, table.schema.names)
        self._columns.refuse_without_text(shown, table.schema.names)
        return table, order

    def _damaged(self, shown: str, error: BaseException) -> FileError:
        problem = str(error).partition("\n")[0] or type(error).__name__
        return FileError(
            f"{shown}: cannot be read as {self._format.title} ({problem}); fetch it again, or add --format"
        )


def _errors() -> tuple[type[Exception], ...]:
    """What pyarrow raises for damaged input."""
    return (arrow_package().ArrowException, OSError, ValueError, EOFError)


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


class TableWriter:
    """Writes Arrow columns to an output. A row group holds up to about 131,072 rows or 64 MiB.

    new: as in `Table`
    """

    def __init__(
        self, output: ByteSink, new: Callable[[io.RawIOBase, pa.Schema], Any], schema: pa.Schema
    ) -> None:
        self._arrow = arrow_package()
        self._schema = schema
        self._sink = PythonFile(output)
        self._writer = new(self._sink, schema)
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


class _KeptTable(Writer):
    """Writes rows of tables with their columns and types. A mark is one more column, of structs.

    flushes: the rows of each chunk are written at once
    """

    def __init__(self, writer: TableWriter, *, flushes: bool) -> None:
        self._writer = writer
        self._flushes = flushes

    def write(self, chunk: RowChunk, rows: list[int]) -> None:
        self._write(cast(TableRows, chunk.rows).batch, rows)

    def write_marked(self, chunk: RowChunk, marks: list[RowMark | None]) -> None:
        batch = _with_column(cast(TableRows, chunk.rows).batch, marks)
        self._write(batch, [row for row, mark in enumerate(marks) if mark is not None])

    def _write(self, batch: pa.RecordBatch, rows: list[int]) -> None:
        self._writer.write(batch, rows)
        if self._flushes:
            self._writer.flush()

    def end(self) -> None:
        self._writer.end()

    def close(self) -> None:
        self._writer.close()


def _struct() -> pa.Field:
    pa = arrow_package()
    text, number = pa.string(), pa.int64()
    kinds = {
        "leader": number,
        "leader_line": number,
        "similarity": pa.float64(),
        "distance": number,
        "shared": number,
        "cluster": number,
        "flags": pa.list_(text),
        "apart_from": number,
        "line": number,
    }
    return pa.field(NAME, pa.struct([(name, kinds.get(name, text)) for name in RowMark._fields]))


def _with_column(batch: pa.RecordBatch, marks: list[RowMark | None]) -> pa.RecordBatch:
    pa = arrow_package()
    field = _struct()
    column = pa.array([None if mark is None else _of_struct(mark) for mark in marks], field.type)
    return pa.RecordBatch.from_arrays([*batch.columns, column], schema=batch.schema.append(field))


def _of_struct(mark: RowMark) -> dict[str, Any]:
    """The mark as a dict for pyarrow, with ids as text.

    Ids must have one type in the schema, but may be numbers in one file and text in another.
    """
    mark = mark.with_text_ids()
    ids = {"leader_id": mark.leader_id, "apart_from_id": mark.apart_from_id}
    return mark._asdict() | {name: None if id_ is None else _as_utf8(str(id_)) for name, id_ in ids.items()}


def _as_utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
