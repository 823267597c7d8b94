"""Plain text: each line is a message."""

from __future__ import annotations

from dataclasses import replace

from twinsieve.pipeline.files.format import Task
from twinsieve.pipeline.files.formats.text_rows import TextFormat, TextReader
from twinsieve.pipeline.files.rows import Rows
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

    def columns(self, rows: Rows) -> MessageColumns:
        texts = [None if row is None else row.removesuffix(b"\r") for row in rows.rows]
        return super().columns(replace(rows, rows=texts))
