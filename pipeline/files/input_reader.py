"""`InputReader`: reads inputs of one format as chunks of rows, with the messages in them as columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from twinsieve.pipeline.files.format import Format, Reader, RowChunk, Task, Writer
from twinsieve.pipeline.files.source import InputSource, is_stream
from twinsieve.pipeline.files.write import Output
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings


class InputReader:
    """Reads inputs one after the other.

    whole, marks: as in `Task`
    ids_shown: as in `MessageReader`
    apart: the inputs are independent: each may have other columns, and `writer` is for the one opened last
    """

    def __init__(
        self,
        settings: Settings,
        format_: Format,
        *,
        whole: bool = False,
        marks: bool = False,
        ids_shown: bool = False,
        apart: bool = False,
    ) -> None:
        source = settings.input.model_copy(update={"encoding": format_.messages})
        settings = settings.model_copy(update={"input": source})
        passes_null = settings.passes_null_text(on_files=True)
        messages = MessageReader(
            settings,
            flat=format_.flat,
            ids_shown=ids_shown,
            passes_null=passes_null,
            cuts_lists=format_.cuts_lists,
        )
        self._new = partial(format_.reader, Task(messages, settings, whole, marks))
        self._apart = apart
        self._reader: Reader = self._new()
        self._chosen: dict[str, str] = {}

    @property
    def codec(self) -> str:
        """Name of the encoding of the rows in a chunk."""
        return self._reader.codec

    @property
    def other_order(self) -> Collection[str]:
        """Inputs whose columns have another order than those of the first one (`Reader.other_order`)."""
        return self._reader.other_order

    def choices(self) -> list[str]:
        """What inputs showed about how to read them, as lines for the user, once each (`Reader.choices`)."""
        self._note_choices()
        return [f"{where}: {line}" for line, where in self._chosen.items()]

    def _note_choices(self) -> None:
        for line, where in self._reader.choices.items():
            self._chosen.setdefault(line, where)

    def chunks(self, source: InputSource) -> Iterator[RowChunk]:
        """All rows of an input, in order.

        raises: FileError if the input cannot be read, or has other columns than the first input
        """
        return map(self.decoded, self.rows_alone(source))

    def decoded(self, chunk: RowChunk) -> RowChunk:
        """A chunk of `rows_alone` with its messages. The chunks of an input must come in order."""
        return self._reader.decoded(chunk)

    def rows_alone(self, source: InputSource) -> Iterator[RowChunk]:
        """The chunks of `chunks`, but without messages: the rows are not decoded. raises: as `chunks`"""
        if self._apart:
            self._note_choices()
            self._reader = self._new()
        return self._reader.rows(source)

    def size_of(self, name: str) -> int | None:
        """The size of an input in bytes, None for a stream.

        Also checks that a file can be read, and that its columns are those of the first input. A stream is
        not checked, because its bytes can be read only once.
        raises: FileError, UsageError, as `chunks`
        """
        if is_stream(name):
            return None
        if self._apart:
            self._reader = self._new()
        with InputSource(name) as source:
            self._reader.check(source)
            return source.size

    def writer(self, output: Output) -> Writer:
        """A writer of an output that is like the inputs; see `Reader.writer`."""
        return self._reader.writer(output)
