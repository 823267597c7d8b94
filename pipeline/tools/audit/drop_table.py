"""Write drops as a table with flat columns: CSV for people and spreadsheets, Parquet for programs."""

from __future__ import annotations

import csv
import io
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.files.write import ByteSink
from twinsieve.pipeline.tools.audit.store import DropTable

_LIKE = "CASE measure WHEN '{0}' THEN floor(likeness)::BIGINT END AS {0}"
_SELECTED = {
    **{name: name for name in ("position", "id", "source", "line", "element")},
    "time": "time_ms AS time",
    "stage": "stage",
    "similarity": "CASE measure WHEN 'similarity' THEN likeness END AS similarity",
    **{name: _LIKE.format(name) for name in ("distance", "shared")},
    "flags": "nullif(replace(flags, chr(10), ' '), '') AS flags",
    **{
        name: name
        for name in ("duplicate_of", "duplicate_of_id", "leader_source", "leader_line", "leader_element")
    },
    **{name: name for name in ("text", "leader_text")},
}
COLUMNS = tuple(_SELECTED)
"""Names of the columns: those of a row of --duplicates, but `time`, and `flags` with blanks between them."""
_QUERY = f"SELECT {', '.join(_SELECTED.values())} FROM drops ORDER BY n"
_TIME = COLUMNS.index("time")
_FORMULA = tuple("=+-@＝＋－＠")
"""A spreadsheet computes a cell that begins with one of these."""
_ROWS, _BYTES = 8_192, 1 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


def moment(time_ms: int) -> datetime:
    """The time in UTC, or the first moment of year 1 for an earlier one: a part of the time may begin there.

    time_ms: ms since 1970, until year 9999
    """
    return _EPOCH + timedelta(milliseconds=max(time_ms, _FIRST_MS))


def write_csv(drops: DropTable, output: ByteSink) -> None:
    """Write CSV in UTF-8 with a header, one drop a line; a value that is missing is an empty cell.

    Texts, ids and names of inputs are written for a reader: characters that act (control characters, line
    breaks, marks of direction) as escapes, and with an apostrophe in front where a spreadsheet would compute
    the cell or take an apostrophe away. raises: FileError
    """
    found = drops.connection.execute(_QUERY)
    rows: list[tuple[Any, ...]] = [COLUMNS]
    while rows:
        block = io.StringIO()
        csv.writer(block, lineterminator="\n").writerows(map(_cells, rows))
        output.write(block.getvalue().encode())
        rows = found.fetchmany(_ROWS)


def write_parquet(drops: DropTable, output: ByteSink) -> None:
    """Write Parquet: texts as they are, `time` as a timestamp, UTC. raises: FileError"""
    timed = _QUERY.replace("time_ms AS time", "make_timestamp(time_ms * 1000)::TIMESTAMPTZ AS time")
    with tempfile.TemporaryDirectory(prefix="twinsieve-") as folder:
        made = Path(folder) / "drops.parquet"
        drops.connection.execute(f"COPY ({timed}) TO '{made}' (FORMAT parquet, COMPRESSION zstd)")
        with made.open("rb") as content:
            while block := content.read(_BYTES):
                output.write(block)


def _cells(row: tuple[Any, ...]) -> list[Any]:
    cells = list(map(_cell, row))
    if isinstance(row[_TIME], int):
        cells[_TIME] = moment(row[_TIME]).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return cells


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) or shown.startswith("'") else shown
