"""Writes the kept rows, in the format of the inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from twinsieve.pipeline.dedup.marked import Marker, marks_of
from twinsieve.pipeline.dedup.sinks import Judged
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.encoding import Encoded, is_wide, order_of
from twinsieve.pipeline.files.format import ending_of
from twinsieve.pipeline.files.messages import InputReader, RowChunk
from twinsieve.pipeline.files.rows import indent_of, one_line
from twinsieve.pipeline.files.table import TableWriter
from twinsieve.pipeline.files.write import ByteSink, Output, RowWriter
from twinsieve.stages.rows.lines import Lines


class KeptRows:
    """A sink that writes the kept rows of chunks to one output; for CSV, it writes the header first.

    Rows are written with their exact bytes, except JSON documents that are not JSON lines: if the output is
    named .json, they become one array; otherwise each becomes one line, without its line breaks. Rows of
    Parquet and Arrow keep all columns and types. UTF-16 and UTF-32 are written as in the first input.

    reader: the reader of the inputs, which knows their header, schema and encoding
    marker: if given, adds marks to the rows, the header and the schema, and all rows are written
    """

    def __init__(self, output: Output, reader: InputReader, marker: Marker | None = None) -> None:
        self._output = output
        self._marker = marker
        self._reader = reader
        self._bytes: ByteSink = output
        self._lines = RowWriter(output)
        self._begun = False
        self._any = False
        self.finished: list[Output] = []
        """Always empty; `KeptByInput` lists its own outputs here, but this output belongs to the caller."""
        self._table: TableWriter | None = None

    def take(self, judged: Judged) -> None:
        chunk = judged.chunk
        if self._marker is not None:
            self.write(*self._marker.marked(chunk, marks_of(judged)))
        else:
            self.write(chunk, judged.kept().tolist())

    def write(self, chunk: RowChunk, kept: list[int]) -> None:
        """Append the rows of a chunk with these indices (ascending)."""
        self._begin()
        if self._table is not None:
            if chunk.batch is not None:
                self._table.write(chunk.batch, kept)
                if self._output.is_stream and self._reader.table_kind == "arrow stream":
                    self._table.flush()
            return
        rows = chunk.rows.rows
        if isinstance(rows, Lines) and not self._is_array and not self._reader.documents:
            wanted = rows.picked(kept)
        else:
            wanted = [row for number in kept if (row := rows[number]) is not None]
        if self._is_array:
            if wanted:
                # A document that spans lines gets the indentation of its first line back, so that it looks as
                # in the input.
                elements = [indent_of(row) + row for row in wanted]
                self._bytes.write((b",\n" if self._any else b"\n") + b",\n".join(elements))
        elif self._reader.documents:
            self._lines.write([one_line(row) for row in wanted])
        else:
            bare = not chunk.rows.terminated and bool(kept) and kept[-1] == len(rows) - 1
            self._lines.write(wanted, bare=bare)
        self._any = self._any or bool(wanted)

    def end_input(self) -> None:
        """Does nothing: the rows of the next input are written to the same output."""

    def end(self) -> None:
        """End the JSON array or the table; without any rows, the header or an empty array is written."""
        self._begin()
        if self._table is not None:
            self._table.end()
        elif self._is_array:
            self._bytes.write(b"\n]\n" if self._any else b"]\n")

    def close(self) -> None:
        """Stop writing, without writing the end of a table."""
        if self._table is not None:
            self._table.close()

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        reader = self._reader
        header, schema = reader.header, reader.schema
        if self._marker is not None:
            header = None if header is None else self._marker.header(header)
            schema = None if schema is None else self._marker.schema(schema)
        if schema is not None:
            self._table = TableWriter(self._output, reader.table_kind, schema, reader.packing)
        encoding = reader.dialect.encoding
        if encoding is not None and is_wide(encoding):
            mark = reader.mark or b""
            self._bytes = Encoded(self._output, order_of(encoding, mark), mark)
            self._lines = RowWriter(self._bytes)
        if self._is_array:
            self._bytes.write(b"[")
        if header is not None:
            self._lines.write([header])

    @property
    def _is_array(self) -> bool:
        return bool(self._reader.documents) and ending_of(self._output.name) == ".json"


class KeptByInput:
    """A sink that writes the kept rows of each input to its own output, in the format of that input.

    inputs, outputs: names of the inputs, and of the output of each
    reader: must treat the inputs as independent (`apart`)
    mark: add marks to the rows
    finished: outputs of finished inputs: their content is on disk, but they do not have their names yet
    raises: FileError if an output or its folder cannot be made
    """

    def __init__(self, inputs: list[str], outputs: Sequence[str], reader: InputReader, *, mark: bool) -> None:
        self._inputs = inputs
        self._outputs = outputs
        self._reader = reader
        self._mark = mark
        self._open: tuple[Output, KeptRows] | None = None
        self.finished: list[Output] = []
        self._new_folders: list[str] = []
        try:
            for folder in dict.fromkeys(map(os.path.dirname, outputs)):
                self._make(folder)
        except FileError:
            self.close()
            raise
        for name in outputs:
            if os.path.isdir(name):
                self.close()
                raise FileError(f"{name}: cannot be written: is a directory")

    def _make(self, folder: str) -> None:
        missing = []
        while folder and not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for name in reversed(missing):
            try:
                os.mkdir(name)
            except OSError as error:
                raise FileError(f"{name}: the folder cannot be made: {error.strerror}") from error
            self._new_folders.append(name)

    def _current(self) -> KeptRows:
        if self._open is None:
            number = len(self.finished)
            marker = None
            if self._mark:
                marker = Marker(self._reader, self._inputs[number])
            output = Output(self._outputs[number])
            self._open = output, KeptRows(output, self._reader, marker)
        return self._open[1]

    def take(self, judged: Judged) -> None:
        self._current().take(judged)

    def write(self, chunk: RowChunk, kept: list[int]) -> None:
        """Append the rows of a chunk of the current input, with these indices (ascending)."""
        self._current().write(chunk, kept)

    def end_input(self) -> None:
        """Finish the output of the current input; later rows belong to the next input."""
        self._current().end()
        assert self._open is not None, "it was opened just now"
        output, rows = self._open
        rows.close()
        output.sync()
        # Close the descriptor, because thousands of outputs would otherwise keep thousands of them open.
        output.rest()
        self.finished.append(output)
        self._open = None

    def end(self) -> None:
        """Does nothing, because `end_input` has finished every output."""

    def close(self) -> None:
        """Delete outputs that do not have their names yet, and the empty folders that were made for them."""
        if self._open is not None:
            self._open[1].close()
            self.finished.append(self._open[0])
            self._open = None
        for output in self.finished:
            output.discard()
        for folder in reversed(self._new_folders):
            with suppress(OSError):
                os.rmdir(folder)
