"""Parquet, with the compression of the first input."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from twinsieve.pipeline.files.formats.arrow_table import BATCH_ROWS, Table, TableFormat


class Parquet(TableFormat):
    """Parquet."""

    name = "parquet"
    title = "Parquet"
    endings = (".parquet", ".pq")
    # The fifth byte begins a thrift structure, which follows in every Parquet file, but not in a text "PAR1".
    beginnings = (b"PAR1\x15",)

    def table(self, raw: io.BufferedReader, shown: str, only: set[str] | None) -> Table:
        from pyarrow import parquet

        self.refuse_pipe(raw, shown)
        file = parquet.ParquetFile(raw, buffer_size=1 << 20, pre_buffer=False)
        schema, packing = file.schema_arrow, "snappy"
        if file.num_row_groups and file.metadata.num_columns:
            packing = file.metadata.row_group(0).column(0).compression.lower()
        # A nested column is read as a whole, by the name of its top-level column.
        columns = None if only is None else [name for name in schema.names if name in only]
        return Table(schema, file.iter_batches(BATCH_ROWS, columns=columns), parquet_writer(packing))


def parquet_writer(packing: str) -> Callable[[io.RawIOBase, Any], Any]:
    """What makes pyarrow's writer of Parquet (`Table.new`). packing: name of the compression"""

    def new(sink: io.RawIOBase, schema: Any) -> Any:
        from pyarrow import parquet

        return parquet.ParquetWriter(sink, schema, compression=None if packing == "uncompressed" else packing)

    return new
