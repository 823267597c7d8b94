"""JSON lines: each line is a JSON object."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import cast

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.files.format import RowChunk, Task, Writer
from twinsieve.pipeline.files.formats.text_rows import TextFormat, TextReader, TextWriter
from twinsieve.pipeline.files.marks import NAME, RowMark, name_taken
from twinsieve.pipeline.files.rows import shown_bytes
from twinsieve.pipeline.files.write import Output
from twinsieve.pipeline.messages.decode import decode_json
from twinsieve.pipeline.messages.spelling import to_json

_QUOTED_NAME = f'"{NAME}"'.encode()
_OBJECTS = (None, DeadLetterReason.MISSING_FIELD, DeadLetterReason.NOT_TEXT)
"""Reasons for which a row is unreadable although it is a JSON object; the mark is added to that object."""


class JsonLines(TextFormat):
    """Lines of JSON."""

    name = "jsonl"
    title = "JSON lines"
    endings = (".jsonl", ".ndjson")

    def reader(self, task: Task) -> TextReader:
        """A new reader."""
        return _LinesReader(self.encoding, task)


class _LinesReader(TextReader):
    def writer(self, output: Output) -> Writer:
        return JsonWriter(output, self)


class JsonWriter(TextWriter):
    """Writes rows of JSON. A mark is one more member of the object, in ASCII, which fits every encoding.

    A row that is not an object becomes text, or base64, in an object with the mark.
    """

    def marked(self, chunk: RowChunk, row: int, mark: RowMark, reason: DeadLetterReason | None) -> bytes:
        raw = chunk.rows.raw(row)[0]
        if reason not in _OBJECTS:
            shown = json.dumps(shown_bytes("row", raw, self.reader.codec))
            return b"{" + _member(mark)[:-1] + b", " + shown[1:].encode() + b"}"
        if _QUOTED_NAME in raw and NAME in decode_json(raw.decode(self.reader.codec).encode()):
            raise name_taken(f"{chunk.source}:{chunk.line_of(row)}", "a member")
        before = raw[: raw.rindex(b"}")].rstrip(b" \t\r\n")
        comma = b"" if before.endswith(b"{") else b", "
        return before + comma + _member(mark) + raw[len(before) :]


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
        return _quoted(cast(str, value))
    if not value:
        return "[]"
    return _NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], to_json(value).decode())


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_quoted = lru_cache(1024)(json.dumps)
"""A text as JSON; cached, because names of files and verdicts are repeated in many rows."""
