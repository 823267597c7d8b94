"""Write drops as a table with flat columns: CSV for people and spreadsheets, Parquet for programs."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, Self

from twinsieve.pipeline.audit.drops import Drop
from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.files.formats.parquet import parquet_writer
from twinsieve.pipeline.files.formats.tables import TableWriter, arrow_package
from twinsieve.pipeline.files.write import ByteSink

COLUMNS = (
    "position",
    "id",
    "source",
    "line",
    "time",
    "stage",
    "similarity",
    "distance",
    "shared",
    "flags",
    "duplicate_of",
    "duplicate_of_id",
    "leader_source",
    "leader_line",
    "text",
    "leader_text",
)
"""Names of the columns: those of a row of --duplicates, but `time`, and `flags` with blanks between them."""
_NUMBERS = ("position", "line", "distance", "shared", "duplicate_of", "leader_line")
_FORMULA = tuple("=+-@＝＋－＠")
"""A spreadsheet computes a cell that begins with one of these."""
_BLOCK_CHARACTERS = 1 << 20
_BLOCK_ROWS = 8192
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


class DropWriter(Protocol):
    """Writes drops to an output."""

    def write(self, drop: Drop) -> None:
        """Append a row. raises: FileError"""

    def end(self) -> None:
        """Write what is buffered, and the end of the file. raises: FileError"""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


def moment(time_ms: int) -> datetime:
    """The time in UTC, or the first moment of year 1 for an earlier one: a part of the time may begin there.

    time_ms: ms since 1970, until year 9999
    """
    return _EPOCH + timedelta(milliseconds=max(time_ms, _FIRST_MS))


class CsvDrops:
    """Writes CSV in UTF-8 with a header, one drop a line; a value that is missing is an empty cell.

    Texts, ids and names of inputs are written for a reader: characters that act (control characters, line
    breaks, marks of direction) as escapes, and with an apostrophe in front where a spreadsheet would compute
    the cell or take an apostrophe away.
    """

    def __init__(self, output: ByteSink) -> None:
        self._output = output
        self._block = io.StringIO()
        self._writer = csv.writer(self._block, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def write(self, drop: Drop) -> None:
        """Append a row. raises: FileError"""
        self._writer.writerow(map(_cell, values_of(drop)))
        if self._block.tell() >= _BLOCK_CHARACTERS:
            self._flush()

    def end(self) -> None:
        """Write what is buffered. raises: FileError"""
        self._flush()

    def _flush(self) -> None:
        self._output.write(self._block.getvalue().encode())
        self._block.seek(0)
        self._block.truncate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Does nothing, because the output is closed by its owner."""


class ParquetDrops:
    """Writes Parquet: texts as they are, `time` as a timestamp in ms, UTC.

    Only half a surrogate pair, which UTF-8 cannot hold, is written as an escape.
    raises: UsageError if the package pyarrow is not installed
    """

    def __init__(self, output: ByteSink) -> None:
        self._arrow: Any = arrow_package()
        arrow = self._arrow
        types = dict.fromkeys(COLUMNS, arrow.string()) | dict.fromkeys(_NUMBERS, arrow.int64())
        types |= {"time": arrow.timestamp("ms", tz="UTC"), "similarity": arrow.float64()}
        self._schema = arrow.schema([(name, types[name]) for name in COLUMNS])
        self._writer = TableWriter(output, parquet_writer("zstd"), self._schema)
        self._rows: list[tuple[Any, ...]] = []
        self._characters = 0

    def write(self, drop: Drop) -> None:
        """Append a row. raises: FileError"""
        row = tuple(_in_utf8(value) if isinstance(value, str) else value for value in values_of(drop))
        self._rows.append(row)
        self._characters += len(row[-1] or "") + len(row[-2] or "")
        if len(self._rows) >= _BLOCK_ROWS or self._characters >= _BLOCK_CHARACTERS:
            self._flush()

    def end(self) -> None:
        """Write what is buffered, and the end of the file. raises: FileError"""
        self._flush()
        self._writer.end()

    def _flush(self) -> None:
        if self._rows:
            columns = [
                self._arrow.array(column, field.type)
                for column, field in zip(zip(*self._rows, strict=True), self._schema, strict=True)
            ]
            batch = self._arrow.record_batch(columns, schema=self._schema)
            self._writer.write(batch, list(range(len(self._rows))))
        self._rows, self._characters = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()


def values_of(drop: Drop) -> tuple[Any, ...]:
    """The values of COLUMNS. Numbers are numbers, `time` is a datetime, and None is missing."""
    message, leader = drop.message, drop.leader
    likeness: dict[str, float | int] = {
        drop.measure: drop.likeness if drop.measure == "similarity" else int(drop.likeness)
    }
    return (
        message.position,
        message.id,
        message.source,
        message.line,
        None if drop.time_ms is None else moment(drop.time_ms),
        drop.stage,
        likeness.get("similarity"),
        likeness.get("distance"),
        likeness.get("shared"),
        " ".join(drop.flags) or None,
        *((None,) * 4 if leader is None else (leader.position, leader.id, leader.source, leader.line)),
        message.text,
        None if leader is None else leader.text,
    )


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) or shown.startswith("'") else shown


def _in_utf8(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
