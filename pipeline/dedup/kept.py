"""Kept rows in the form in which the inputs had them."""

from __future__ import annotations

import os
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


class KeptRows:
    """Writes the kept rows of chunks to an output, the header of CSV in front.

    Rows come out byte for byte, with two exceptions for JSON documents that are not JSON lines: as JSON lines
    they lose their line breaks, and where the output is named .json they become one array again. Rows of
    Parquet and Arrow keep all columns and types. UTF-16 and UTF-32 come out as the first input has them.

    marker: adds marks to all rows, which then come out all, to the header and to the schema
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
        """Outputs that are on disk and wait for their names, none: this one is not apart from the others."""
        self._table: TableWriter | None = None

    def take(self, judged: Judged) -> None:
        chunk = judged.chunk
        if self._marker is not None:
            self.write(*self._marker.marked(chunk, marks_of(judged, in_bits=self._marker.in_bits)))
        else:
            self.write(chunk, judged.kept().tolist())

    def write(self, chunk: RowChunk, kept: list[int]) -> None:
        """Append the rows of a chunk with these numbers, ascending."""
        self._begin()
        if self._table is not None:
            if chunk.batch is not None:
                self._table.write(chunk.batch, kept)
                if self._output.is_stream and self._reader.table_kind == "arrow stream":
                    self._table.flush()
            return
        rows = chunk.rows.rows
        wanted = [row for number in kept if (row := rows[number]) is not None]
        if self._is_array:
            if wanted:
                # As they stood: a document that spans lines has its indentation back in front of the first.
                elements = [indent_of(row) + row for row in wanted]
                self._bytes.write((b",\n" if self._any else b"\n") + b",\n".join(elements))
        elif self._reader.documents:
            self._lines.write([one_line(row) for row in wanted])
        else:
            bare = not chunk.rows.terminated and bool(kept) and kept[-1] == len(rows) - 1
            self._lines.write(wanted, bare=bare)
        self._any = self._any or bool(wanted)

    def end_input(self) -> None:
        """The rows of the next input follow."""

    def end(self) -> None:
        """Close the array, if it is one; an input without rows leaves its header, or an empty array."""
        self._begin()
        if self._table is not None:
            self._table.end()
        elif self._is_array:
            self._bytes.write(b"\n]\n" if self._any else b"]\n")

    def close(self) -> None:
        """Write nothing more, though nothing ended."""
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
    """Writes the kept rows of each input to an output of its own, in the form which that input has.

    inputs, outputs: their names; reader: treats the inputs as apart; mark, in_bits: as of `Marker`
    finished: outputs of the inputs that ended: on disk, without their names
    raises: FileError where an output cannot be
    """

    def __init__(
        self, inputs: list[str], outputs: list[str], reader: InputReader, *, mark: bool, in_bits: bool
    ) -> None:
        self._inputs = inputs
        self._outputs = outputs
        self._reader = reader
        self._mark = mark
        self._in_bits = in_bits
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
                marker = Marker(self._reader, self._inputs[number], in_bits=self._in_bits)
            output = Output(self._outputs[number])
            self._open = output, KeptRows(output, self._reader, marker)
        return self._open[1]

    def take(self, judged: Judged) -> None:
        self._current().take(judged)

    def write(self, chunk: RowChunk, kept: list[int]) -> None:
        """Append the rows of a chunk of the input that is read with these numbers, ascending."""
        self._current().write(chunk, kept)

    def end_input(self) -> None:
        """Finish the output of the input that was read; the rows of the next one follow."""
        self._current().end()
        assert self._open is not None, "it was opened just now"
        output, rows = self._open
        rows.close()
        output.sync()
        # Thousands of outputs would take as many descriptors until the end.
        output.rest()
        self.finished.append(output)
        self._open = None

    def end(self) -> None:
        """Every output was finished with its input."""

    def close(self) -> None:
        """Leave nothing behind; harmless when all outputs have their names."""
        if self._open is not None:
            self._open[1].close()
            self.finished.append(self._open[0])
            self._open = None
        for output in self.finished:
            output.discard()
        for folder in reversed(self._new_folders):
            with suppress(OSError):
                os.rmdir(folder)
