"""Rows with what the sieve says of them: one member, four columns, or one column of structs more.

What is added is ASCII, so that a row keeps its encoding. A row that could not be read as the others are keeps
its place: as text inside the added member, or in the first column of CSV.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.format import Format
from twinsieve.pipeline.files.messages import InputReader, RowChunk
from twinsieve.pipeline.files.rows import shown_bytes
from twinsieve.pipeline.files.source import STDIN
from twinsieve.pipeline.messages.decode import decode_json
from twinsieve.stages.dead_letter_reasons import Reason
from twinsieve.stages.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
from twinsieve.pipeline.dedup.sinks import Judged, similarity_of
from twinsieve.stages.contract import NO_LEADER, Kind

NAME = "twinsieve"
_QUOTED_NAME = f'"{NAME}"'.encode()
_OBJECTS = (Reason.MISSING_FIELD, Reason.NOT_TEXT)
"""Why an object that was parsed cannot be read."""
_NO_RECORDS = (Reason.INVALID_CSV, Reason.NOT_UTF8, Reason.TOO_LARGE)
"""Why a row of CSV has no fields that fit the header."""


class RowMark(NamedTuple):
    """What the sieve says of one row.

    verdict: unique, exact, near or unreadable
    leader: position of the kept row that it repeats; similarity: 0 to 1, None where likeness is a distance
    cluster: the leader's position, of a unique row its own
    """

    verdict: str
    leader: int | None = None
    similarity: float | None = None
    cluster: int | None = None


def refuse_unmarked(format_: Format) -> None:
    """Refuse a format whose rows have no place for marks. raises: UsageError"""
    if format_ == "text":
        raise UsageError(
            "--mark: plain lines have no fields to add to; name them with --duplicates, "
            "or turn them into JSON lines first"
        )


class Marker:
    """Adds marks to the rows of chunks.

    reader: of the inputs; it knows the columns of CSV once the first one was begun
    first: name of the first input, for errors
    in_bits: likeness is a distance (hamming), which a mark does not tell
    raises: FileError, by its methods, where a row, a header or a schema has the name already
    """

    def __init__(self, reader: InputReader, first: str, *, in_bits: bool = False) -> None:
        self._reader = reader
        self.in_bits = in_bits
        self._is_csv = reader.dialect.format == "csv"
        self._delimiter = reader.dialect.delimiter
        self._shown = "stdin" if first == STDIN else first

    def header(self, header: bytes) -> bytes:
        """The header of CSV with four columns more."""
        names = [f"{NAME}_{field}" for field in RowMark._fields]
        taken = [name for name in names if name in self._reader.names]
        if taken:
            raise self._taken(f"{self._shown}:1", "a column", taken[0])
        return self._with_fields(header, names)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of a table with one column of structs more."""
        if NAME in schema.names:
            raise self._taken(self._shown, "a column", NAME)
        return schema.append(_struct())

    def marked(self, chunk: RowChunk, marks: list[RowMark | None]) -> tuple[RowChunk, list[int]]:
        """The chunk with its rows marked, and the numbers of those that come out.

        marks: one a row of the chunk; None: a blank row, which does not come out
        """
        numbers = [row for row, mark in enumerate(marks) if mark is not None]
        if chunk.batch is not None:
            return replace(chunk, batch=_with_column(chunk.batch, marks)), numbers
        bad = {one.row: one.reason for one in chunk.columns.unreadable}
        rows = list(chunk.rows.rows)
        for row in numbers:
            mark = marks[row] or RowMark("")
            if self._is_csv:
                rows[row] = self._record(chunk.raw(row)[0], mark, is_record=bad.get(row) not in _NO_RECORDS)
            elif bad.get(row) in (None, *_OBJECTS):
                rows[row] = self._object(chunk, row, mark)
            else:
                rows[row] = _wrapped(chunk.raw(row)[0], mark, bad[row], self._reader.codec)
        return replace(chunk, rows=replace(chunk.rows, rows=rows)), numbers

    def _record(self, raw: bytes, mark: RowMark, *, is_record: bool) -> bytes:
        fields = ["" if field is None else str(field) for field in mark]
        if is_record:
            return self._with_fields(raw, fields)
        body = raw.removesuffix(b"\r")
        end = raw[len(body) :]
        try:
            body.decode(self._reader.codec)
        except UnicodeError:
            # Bytes that are no text would keep others from reading the file; the dead letter holds them.
            text = body.decode(self._reader.codec, "backslashreplace")
            body = text.encode(self._reader.codec, "backslashreplace")
        others = self._delimiter * (len(self._reader.names) - 1)
        quoted = b'"' + body.replace(b'"', b'""') + b'"' + others.encode()
        return self._with_fields(quoted + end, fields)

    def _with_fields(self, record: bytes, fields: list[str]) -> bytes:
        # A delimiter may be a point or a dash.
        spelt = [f'"{field}"' if self._delimiter in field else field for field in fields]
        body = record.removesuffix(b"\r")
        return body + self._delimiter.join(["", *spelt]).encode() + record[len(body) :]

    def _object(self, chunk: RowChunk, row: int, mark: RowMark) -> bytes:
        raw = chunk.raw(row)[0]
        if _QUOTED_NAME in raw and NAME in decode_json(raw.decode(self._reader.codec).encode()):
            raise self._taken(f"{chunk.source}:{chunk.line_of(row)}", "a member", NAME)
        before = raw[: raw.rindex(b"}")].rstrip(b" \t\r\n")
        comma = b"" if before.endswith(b"{") else b", "
        return before + comma + _member(mark) + raw[len(before) :]

    def _taken(self, where: str, what: str, name: str) -> FileError:
        return FileError(
            f"{where}: has {what} {name!r} already, which --mark would add; remove it first, "
            "or run without --mark"
        )


def _member(mark: RowMark) -> bytes:
    """The member that is added to an object; half the time of `json.dumps`."""
    leader, similarity, cluster = ("null" if field is None else str(field) for field in mark[1:])
    return (
        f'"{NAME}": {{"verdict": "{mark.verdict}", "leader": {leader}, '
        f'"similarity": {similarity}, "cluster": {cluster}}}'
    ).encode()


def _wrapped(raw: bytes, mark: RowMark, reason: Reason, codec: str) -> bytes:
    """An object that holds a row that is none, as text or as base64."""
    said = mark._asdict() | {"reason": str(reason)} | shown_bytes("row", raw, codec)
    return json.dumps({NAME: said}).encode()


def _struct() -> pa.Field:
    import pyarrow as pa

    kinds = (pa.string(), pa.int64(), pa.float64(), pa.int64())
    return pa.field(NAME, pa.struct(list(zip(RowMark._fields, kinds, strict=True))))


def _with_column(batch: pa.RecordBatch, marks: list[RowMark | None]) -> pa.RecordBatch:
    import pyarrow as pa

    field = _struct()
    column = pa.array([None if mark is None else mark._asdict() for mark in marks], field.type)
    return pa.RecordBatch.from_arrays([*batch.columns, column], schema=batch.schema.append(field))


_UNREADABLE = RowMark("unreadable")


def marks_of(judged: Judged, *, in_bits: bool) -> list[RowMark | None]:
    """One mark a row of the chunk, None for blank rows; in_bits: as of `Marker`."""
    chunk, verdicts = judged.chunk, judged.verdicts
    marks: list[RowMark | None] = [None] * len(chunk.rows.rows)
    for bad in chunk.columns.unreadable:
        marks[bad.row] = _UNREADABLE
    kinds, leaders = verdicts.kinds.tolist(), verdicts.leaders.tolist()
    for index, row in enumerate(chunk.columns.rows):
        if kinds[index] == Kind.UNIQUE:
            marks[row] = RowMark("unique", cluster=judged.first + row)
            continue
        leader = None if leaders[index] == NO_LEADER else leaders[index]
        verdict = "exact" if kinds[index] == Kind.EXACT else "near"
        marks[row] = RowMark(verdict, leader, similarity_of(verdicts, index, in_bits=in_bits), leader)
    return marks
