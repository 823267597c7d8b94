"""JSON lines: each line is a JSON object, perhaps with a comma behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import cast

import numpy as np

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.format import RowChunk, Task, Writer
from twinsieve.pipeline.files.formats.json_elements import as_written, elements_of
from twinsieve.pipeline.files.formats.json_ends import without_comma
from twinsieve.pipeline.files.formats.text_rows import TextFormat, TextReader, TextWriter
from twinsieve.pipeline.files.marks import NAME, RowMark, name_taken
from twinsieve.pipeline.files.rows import Rows, shown_bytes
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.files.write import Output
from twinsieve.pipeline.messages.decode import decode_json
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.stages.errors import UsageError
from twinsieve.stages.rows.lines import Lines

_BRACKET, _RETURN = ord("}"), ord("\r")
_QUOTED_NAME = f'"{NAME}"'.encode()
_OBJECTS = (
    *(None, DeadLetterReason.MISSING_FIELD),
    *(DeadLetterReason.EMPTY_KEY, DeadLetterReason.NOT_TEXT),
)
"""Reasons for which a row is unreadable although it is a JSON object; the mark is added to that object."""


class JsonLines(TextFormat):
    """Lines of JSON."""

    name = "jsonl"
    title = "JSON lines"
    endings = (".jsonl", ".ndjson")
    cuts_lists = True

    def reader(self, task: Task) -> TextReader:
        """A new reader."""
        return JsonReader(self.encoding, task)


class JsonReader(TextReader):
    """Reads lines of JSON.

    A comma at the end of a line is no part of its document, unless the lines are those of an array: that is
    another format, and its brackets would be lost.
    """

    _in_array = False
    """Whether the input begins with a bracket. Chunks of an input are decoded before the next one is read."""

    def __init__(self, encoding: str | None, task: Task) -> None:
        super().__init__(encoding, task)
        if task.marks and task.messages.each is not None:
            raise UsageError("--mark: a row holds several messages ([*] in input.text_field); leave one out")

    def rows(self, source: InputSource) -> Iterator[RowChunk]:
        each = self.messages.each
        if each is not None and self.row_codec is not None:
            raise FileError(
                f"{source.shown}: lists are cut ([*]) in UTF-8 only, not in {self.row_codec}; "
                f"turn it into UTF-8 first, as with `iconv -f {self.row_codec}`"
            )
        for chunk in super().rows(source):
            if each is None:
                yield chunk
            else:
                rows = cast(Rows, chunk.rows)
                yield replace(chunk, rows=elements_of(rows, each, self.messages.roots, self.max_bytes))

    def split(self, source: InputSource) -> Iterator[Rows]:
        is_first = True
        for rows in super().split(source):
            if is_first and (first := next((row for row in rows.rows if row is None or row.strip()), b"")):
                self._in_array, is_first = first.lstrip().startswith(b"["), False
            yield rows

    def payloads(self, rows: Rows) -> Sequence[bytes | None]:
        lines = rows.rows
        if self._in_array or (isinstance(lines, Lines) and _end_with_brackets(lines)):
            return lines
        return [None if row is None else without_comma(row) for row in lines]

    def writer(self, output: Output) -> Writer:
        return JsonWriter(output, self)


class JsonWriter(TextWriter):
    """Writes rows of JSON. A mark is one more member of the object, in ASCII, which fits every encoding.

    A row that is not an object becomes text, or base64, in an object with the mark.
    """

    def write(self, chunk: RowChunk, rows: list[int]) -> None:
        super().write(*as_written(chunk, rows))

    def marked(self, chunk: RowChunk, row: int, mark: RowMark, reason: DeadLetterReason | None) -> bytes:
        raw = chunk.rows.raw(row)[0]
        if reason not in _OBJECTS:
            shown = json.dumps(shown_bytes("row", raw, self.reader.codec))
            return b"{" + _member(mark)[:-1] + b", " + shown[1:].encode() + b"}"
        if _QUOTED_NAME in raw and NAME in decode_json(without_comma(raw).decode(self.reader.codec).encode()):
            raise name_taken(chunk.place_of(row), "a member")
        before = raw[: raw.rindex(b"}")].rstrip(b" \t\r\n")
        comma = b"" if before.endswith(b"{") else b", "
        return before + comma + _member(mark) + raw[len(before) :]


def _end_with_brackets(lines: Lines) -> bool:
    """Whether all lines but empty ones end with `}`, perhaps with a carriage return behind it.

    So do nearly all, and need no look at each of them.
    """
    content = np.frombuffer(lines.piece(), np.uint8)
    last = np.cumsum(lines.sizes)[lines.sizes > 1] - 2
    last -= content[last] == _RETURN
    return bool((content[last] == _BRACKET).all())


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
