"""Implements `--mark`: adds its verdict (a "mark") to each row.

JSON rows get one more member, CSV rows some more columns, and tables one more column of structs. In JSON and
CSV the added text is ASCII, so it fits every encoding. A row that could not be parsed keeps its place in the
output: as text inside a JSON object with the mark, or in the first column of CSV.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.dedup.leaders import Leader
from twinsieve.pipeline.dedup.sinks import Judged, flag_names
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.format import Format
from twinsieve.pipeline.files.messages import InputReader, RowChunk
from twinsieve.pipeline.files.rows import shown_bytes
from twinsieve.pipeline.files.source import STDIN
from twinsieve.pipeline.messages.columns import differing_words, likeness_of
from twinsieve.pipeline.messages.decode import decode_json
from twinsieve.pipeline.messages.fields import id_text
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.stages.contract import NO_LEADER, Kind
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "twinsieve"
_QUOTED_NAME = f'"{NAME}"'.encode()
_OBJECTS = (DeadLetterReason.MISSING_FIELD, DeadLetterReason.NOT_TEXT)
"""Reasons for which a row is unreadable although it is a JSON object; the mark is added to that object."""
_NO_RECORDS = (DeadLetterReason.INVALID_CSV, DeadLetterReason.NOT_UTF8, DeadLetterReason.TOO_LARGE)
"""Reasons for which a CSV row has no fields that fit the header, so the whole row becomes one field."""


class RowMark(NamedTuple):
    """The verdict of one row, as added to the row; a field that does not apply is None (flags: empty).

    verdict: unique, exact, near, no_text or unreadable
    leader, leader_id, leader_source, leader_line: position, id, input and line of the leader, the kept row
        that this row repeats
    similarity: 0 to 1; distance: bits under the method hamming; shared: hashes in common under the method
        signatures; a dropped row has one of the three
    cluster: position of the leader; for a unique row its own position
    flags: as in the duplicates: estimated, unconfirmed, no_features, cut_short, late
    reason: why a unique row was kept although an earlier kept row is similar, or why a row is unreadable
    apart_from, apart_from_id: position and id of that similar row
    says, apart_from_says: the words in which this row and the similar row differ, if one place decided
    source, line: input and line number of this row
    """

    verdict: str
    leader: int | None = None
    leader_id: object = None
    leader_source: str | None = None
    leader_line: int | None = None
    similarity: float | None = None
    distance: int | None = None
    shared: int | None = None
    cluster: int | None = None
    flags: Sequence[str] = ()
    reason: str | None = None
    apart_from: int | None = None
    apart_from_id: object = None
    says: str | None = None
    apart_from_says: str | None = None
    source: str | None = None
    line: int | None = None


def refuse_unmarked(format_: Format) -> None:
    """Refuse a format whose rows cannot hold a mark (plain text). raises: UsageError"""
    if format_ == "text":
        raise UsageError(
            "--mark: plain lines have no fields to add to; name them with --duplicates, "
            "or turn them into JSON lines first"
        )


class Marker:
    """Adds marks to the rows of chunks.

    reader: the reader of the inputs, which knows the columns of CSV after the first input was opened
    first: name of the first input, for errors
    raises: FileError, by its methods, if a row, a header or a schema already has the name of the mark
    """

    def __init__(self, reader: InputReader, first: str) -> None:
        self._reader = reader
        self._is_csv = reader.dialect.format == "csv"
        self._delimiter = reader.dialect.delimiter
        self._shown = "stdin" if first == STDIN else first

    def header(self, header: bytes) -> bytes:
        """The CSV header with one more column for each field of a mark."""
        names = [f"{NAME}_{field}" for field in RowMark._fields]
        taken = [name for name in names if name in self._reader.names]
        if taken:
            raise self._taken(f"{self._shown}:1", "a column", taken[0])
        return self._with_fields(header, names)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of a table with one more column, of structs."""
        if NAME in schema.names:
            raise self._taken(self._shown, "a column", NAME)
        return schema.append(_struct())

    def marked(self, chunk: RowChunk, marks: list[RowMark | None]) -> tuple[RowChunk, list[int]]:
        """The chunk with the marks added to its rows, and the indices of the rows to write.

        marks: one for each row of the chunk; None for a blank row, which is not written
        """
        numbers = [row for row, mark in enumerate(marks) if mark is not None]
        if chunk.batch is not None:
            return replace(chunk, batch=_with_column(chunk.batch, marks)), numbers
        bad = {bad_row.row: bad_row.reason for bad_row in chunk.columns.unreadable}
        rows = list(chunk.rows.rows)
        for row in numbers:
            mark = marks[row] or RowMark("")
            if self._is_csv:
                rows[row] = self._record(chunk.raw(row)[0], mark, is_record=bad.get(row) not in _NO_RECORDS)
            elif bad.get(row) in (None, *_OBJECTS):
                rows[row] = self._object(chunk, row, mark)
            else:
                rows[row] = _wrapped(chunk.raw(row)[0], mark, self._reader.codec)
        return replace(chunk, rows=replace(chunk.rows, rows=rows)), numbers

    def _record(self, raw: bytes, mark: RowMark, *, is_record: bool) -> bytes:
        fields = _fields(mark)
        if is_record:
            return self._with_fields(raw, fields)
        body = raw.removesuffix(b"\r")
        end = raw[len(body) :]
        try:
            body.decode(self._reader.codec)
        except UnicodeError:
            # Bytes that are not text would make the output unreadable, so they are escaped here. The dead
            # letter has the original bytes.
            text = body.decode(self._reader.codec, "backslashreplace")
            body = text.encode(self._reader.codec, "backslashreplace")
        others = self._delimiter * (len(self._reader.names) - 1)
        quoted = b'"' + body.replace(b'"', b'""') + b'"' + others.encode()
        return self._with_fields(quoted + end, fields)

    def _with_fields(self, record: bytes, fields: list[str]) -> bytes:
        # A field may contain the delimiter, because that may be a point or a dash; quote such a field.
        special = (self._delimiter, *'"\r\n')
        spelt = [_in_quotes(field) if any(char in field for char in special) else field for field in fields]
        body = record.removesuffix(b"\r")
        added = self._delimiter.join(["", *spelt]).encode(self._reader.codec, "backslashreplace")
        return body + added + record[len(body) :]

    def _object(self, chunk: RowChunk, row: int, mark: RowMark) -> bytes:
        raw = chunk.raw(row)[0]
        if _QUOTED_NAME in raw and NAME in decode_json(raw.decode(self._reader.codec).encode()):
            raise self._taken(f"{chunk.source}:{chunk.line_of(row)}", "a member", NAME)
        before = raw[: raw.rindex(b"}")].rstrip(b" \t\r\n")
        comma = b"" if before.endswith(b"{") else b", "
        return before + comma + _member(mark) + raw[len(before) :]

    def _taken(self, where: str, part: str, name: str) -> FileError:
        return FileError(
            f"{where}: has {part} {name!r} already, which --mark would add; remove it first, "
            "or run without --mark"
        )


def _member(mark: RowMark) -> bytes:
    """The bytes of the member that is added to a JSON object."""
    fields = [f'"{name}": {_ascii(value)}' for name, value in zip(RowMark._fields, mark, strict=True)]
    return f'"{NAME}": {{{", ".join(fields)}}}'.encode()


def _ascii(value: object) -> str:
    """The value as JSON in ASCII, which fits every encoding of a row."""
    kind = type(value)
    if value is None:
        return "null"
    if kind is int or kind is float:
        return str(value)
    if kind is str:
        return _quoted(value)
    if not value:
        return "[]"
    return _NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], to_json(value).decode())


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_quoted = lru_cache(1024)(json.dumps)
"""A text as JSON; cached, because names of files and verdicts are repeated in many rows."""


def _wrapped(raw: bytes, mark: RowMark, codec: str) -> bytes:
    """A JSON object for a row that is not an object: the mark, and the row as text or as base64."""
    shown = json.dumps(shown_bytes("row", raw, codec))
    return b"{" + _member(mark)[:-1] + b", " + shown[1:].encode() + b"}"


def _struct() -> pa.Field:
    import pyarrow as pa

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
    import pyarrow as pa

    field = _struct()
    column = pa.array([None if mark is None else _of_struct(mark) for mark in marks], field.type)
    return pa.RecordBatch.from_arrays([*batch.columns, column], schema=batch.schema.append(field))


def _of_struct(mark: RowMark) -> dict[str, Any]:
    """The mark as a dict for pyarrow, with ids as text.

    Ids must have one type in the schema, but may be numbers in one file and text in another.
    """
    ids = {"leader_id": id_text(mark.leader_id), "apart_from_id": id_text(mark.apart_from_id)}
    return mark._asdict() | {name: None if id_ is None else _as_utf8(id_) for name, id_ in ids.items()}


def _as_utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _fields(mark: RowMark) -> list[str]:
    """The fields of a mark as texts for CSV, "" for None."""
    spelt = mark._replace(
        leader_id=id_text(mark.leader_id),
        apart_from_id=id_text(mark.apart_from_id),
        flags=" ".join(mark.flags),
    )
    return ["" if field is None else str(field) for field in spelt]


def _in_quotes(field: str) -> str:
    quoted = field.replace('"', '""')
    return f'"{quoted}"'


def marks_of(judged: Judged) -> list[RowMark | None]:
    """The mark (verdict) that is to be added to each row of the chunk; None for a blank row."""
    chunk, verdicts = judged.chunk, judged.verdicts
    source, lines = chunk.source, chunk.lines().tolist()
    marks: list[RowMark | None] = [None] * len(chunk.rows.rows)
    for bad in chunk.columns.unreadable:
        marks[bad.row] = RowMark("unreadable", reason=str(bad.reason), source=source, line=lines[bad.row])
    for bad in chunk.columns.no_text:
        marks[bad.row] = RowMark("no_text", source=source, line=lines[bad.row])
    kinds, leaders, flags = verdicts.kinds.tolist(), verdicts.leaders.tolist(), verdicts.flags.tolist()
    reasons, apart = verdicts.reasons.tolist(), verdicts.apart_from.tolist()
    for index, row in enumerate(chunk.columns.rows):
        mark = RowMark(
            _VERDICTS[kinds[index]],
            flags=flag_names(flags[index]) if flags[index] else (),
            source=source,
            line=lines[row],
        )
        if kinds[index] != Kind.UNIQUE:
            number = None if leaders[index] == NO_LEADER else leaders[index]
            leader = judged.leaders.get(leaders[index], _UNKNOWN)
            mark = mark._replace(
                leader=number,
                leader_id=leader.id,
                leader_source=leader.source,
                leader_line=leader.line,
                cluster=number,
            )
            mark = _with_likeness(mark, *likeness_of(verdicts, index))
        else:
            mark = mark._replace(cluster=judged.first + row)
            if reasons[index]:
                earlier, later = differing_words(verdicts, index) or (None, None)
                mark = mark._replace(
                    reason=Rule(reasons[index]).words,
                    apart_from=apart[index],
                    apart_from_id=judged.leaders.get(apart[index], _UNKNOWN).id,
                    says=later,
                    apart_from_says=earlier,
                )
        marks[row] = mark
    return marks


def _with_likeness(mark: RowMark, name: str, likeness: float) -> RowMark:
    return RowMark(**(mark._asdict() | {name: likeness}))


_VERDICTS = {Kind.UNIQUE: "unique", Kind.EXACT: "exact", Kind.NEAR: "near"}
_UNKNOWN = Leader(None, "")
