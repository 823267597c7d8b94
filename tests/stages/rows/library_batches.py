"""Record batches as kafka-python writes them, row by row: the twin of what is written in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.record.memory_records import MemoryRecordsBuilder

from twinsieve.stages.rows.record_copies import BATCH_HEADER_BYTES, EncodedBatch


class _Name(str):
    """A header name of any bytes; the library has no other way to write one that is no UTF-8."""

    __slots__ = ()

    def encode(self, *_: str) -> bytes:
        return super().encode("utf-8", "surrogateescape")


def written_by_library(rows: Sequence[tuple[Any, ...]], batch_bytes: int) -> list[EncodedBatch]:
    """The batches of these rows, each with time, key, value and headers."""
    builders: list[MemoryRecordsBuilder] = []
    for stamp, key, value, headers in rows:
        row = stamp, key, value, [(_Name(name), text) for name, text in headers]
        if not builders or builders[-1].append(*row) is None:
            builders.append(MemoryRecordsBuilder(2, 0, batch_bytes))
            assert builders[-1].append(*row) is not None
    return [
        EncodedBatch(
            bytes(each._builder._buffer[BATCH_HEADER_BYTES:]),
            each._builder._num_records,
            each._builder._first_timestamp,
            each._builder._max_timestamp,
        )
        for each in builders
    ]
