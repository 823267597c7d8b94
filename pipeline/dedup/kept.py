"""Kept rows in the form in which the inputs had them."""

from __future__ import annotations

from twinsieve.pipeline.dedup.marked import Marker, marks_of
from twinsieve.pipeline.dedup.sinks import Judged
from twinsieve.pipeline.files.encoding import Encoded, is_wide, order_of
from twinsieve.pipeline.files.format import ending_of
from twinsieve.pipeline.files.messages import InputReader, RowChunk
from twinsieve.pipeline.files.rows import one_line
from twinsieve.pipeline.files.table import TableWriter
from twinsieve.pipeline.files.write import ByteSink, Output, RowWriter


class KeptRows:
    """Writes the kept rows of chunks to an output, the header of CSV in front.

    Rows come out byte for byte, with two exceptions for JSON documents that are no JSON lines: as JSON lines
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
                self._bytes.write((b",\n" if self._any else b"\n") + b",\n".join(wanted))
        elif self._reader.documents:
            self._lines.write([one_line(row) for row in wanted])
        else:
            bare = not chunk.rows.terminated and bool(kept) and kept[-1] == len(rows) - 1
            self._lines.write(wanted, bare=bare)
        self._any = self._any or bool(wanted)

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
