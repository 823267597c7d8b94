"""Plain text: each line is a message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from twinsieve.pipeline.files.format import RowChunk, Task
from twinsieve.pipeline.files.formats.text_rows import TextFormat, TextReader
from twinsieve.pipeline.files.rows import Rows, old_line_ends
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.messages.reader import MessageColumns


class PlainText(TextFormat):
    """Lines of text."""

    name = "text"
    title = "lines of text"
    endings = (".txt", ".text")
    messages = "text"
    no_marks = (
        "plain lines have no fields to add to; name them with --duplicates, "
        "or turn them into JSON lines first"
    )

    def reader(self, task: Task) -> TextReader:
        """A new reader."""
        return _LinesReader(self.encoding, task)


class _LinesReader(TextReader):
    """Reads lines of text; a carriage return before the newline is not part of the text."""

    def rows(self, source: InputSource) -> Iterator[RowChunk]:
        for chunk in super().rows(source):
            # Only here: an input without any newline is one row, and nothing else shows that it is many.
            rows = cast(Rows, chunk.rows)
            if rows.line == 1 and not rows.terminated and len(rows) == 1:
                chunk.doubt = _doubt(rows.rows[0] or b"")
            yield chunk

    def columns(self, rows: Rows) -> MessageColumns:
        texts = [None if row is None else row.removesuffix(b"\r") for row in rows.rows]
        return super().columns(replace(rows, rows=texts))


def _doubt(row: bytes) -> str | None:
    """A text about the only row of an input, None if it holds no carriage return."""
    ends, count = old_line_ends(row), row.count(b"\r")
    returns = "a carriage return" if count == 1 else f"{count:,} carriage returns"
    return None if ends is None else f"is one row with {returns} and no newline; {ends}"
