"""Arrow files (also called Feather) and Arrow streams; the output is of the kind of the first input."""

from __future__ import annotations

import io

from twinsieve.pipeline.files.formats.arrow_table import Table, TableFormat, arrow_package

_FILE = b"ARROW1"


class Arrow(TableFormat):
    """Arrow."""

    name = "arrow"
    title = "Arrow"
    endings = (".arrow", ".arrows", ".feather", ".ipc")
    beginnings = (b"ARROW1\x00\x00", b"\xff\xff\xff\xff")

    def table(self, raw: io.BufferedReader, shown: str, only: set[str] | None) -> Table:  # noqa: ARG002
        ipc = arrow_package().ipc
        if raw.peek(len(_FILE))[: len(_FILE)] != _FILE:
            stream = ipc.open_stream(raw)
            return Table(stream.schema, stream, ipc.new_stream, flows=True)
        self.refuse_pipe(raw, shown)
        file = ipc.open_file(raw)
        batches = (file.get_batch(number) for number in range(file.num_record_batches))
        return Table(file.schema, batches, ipc.new_file)
