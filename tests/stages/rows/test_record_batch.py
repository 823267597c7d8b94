"""Record batches that are written in one call are those that kafka-python writes row by row."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from twinsieve.stages.rows.record_batch import EncodedBatch, encode_batches

_BYTES = st.none() | st.binary(max_size=40) | st.sampled_from([b"x" * 64, b"y" * 9_000])
_TIMES = st.integers(0, 2**41) | st.integers(0, 9)
_HEADERS = st.lists(st.tuples(st.text("aé字", max_size=3), _BYTES), max_size=3)
_ROWS = st.lists(st.tuples(_TIMES, _BYTES, _BYTES, _HEADERS), max_size=30)


def _by_rows(rows: list[Any], batch_bytes: int) -> list[EncodedBatch]:
    """The same batches, made by the library."""
    builders: list[MemoryRecordsBuilder] = []
    for row in rows:
        if not builders or builders[-1].append(*row) is None:
            builders.append(MemoryRecordsBuilder(2, 0, batch_bytes))
            assert builders[-1].append(*row) is not None
    return [
        EncodedBatch(
            bytes(each._builder._buffer[61:]),
            each._builder._num_records,
            each._builder._first_timestamp,
            each._builder._max_timestamp,
        )
        for each in builders
    ]


@given(_ROWS, st.sampled_from([62, 100, 150, 300, 10_000, 1 << 20]))
@example([(5, None, None, [])], 61)
@example([(2**41, b"", b"", []), (0, b"k", b"v" * 63, [("é", None)]), (2**41, b"k", b"v" * 64, [])], 1 << 20)
def test_batches_are_those_of_the_library(rows: list[Any], batch_bytes: int) -> None:
    columns: list[Any] = [[row[place] for row in rows] for place in range(4)]
    assert encode_batches(*columns, batch_bytes) == _by_rows(rows, batch_bytes)


def test_more_rows_than_a_byte_counts_are_read_back_as_they_were() -> None:
    count = 300
    times = [1_700_000_000_000 - row for row in range(count)]
    values = [b"%d" % row for row in range(count)]
    (batch,) = encode_batches(times, [None] * count, values, [[("n", b"")]] * count, 1 << 20)
    builder = MemoryRecordsBuilder(2, 0, 1 << 20)
    inner = builder._builder
    inner._buffer += batch.records
    inner._num_records, inner._last_offset = batch.rows, batch.rows - 1
    inner._first_timestamp, inner._max_timestamp = batch.first_ms, batch.latest_ms
    builder.close()
    records = [record for each in MemoryRecords(builder.buffer()) for record in each]
    assert [(record.offset, record.timestamp, record.value) for record in records] == [
        (row, times[row], values[row]) for row in range(count)
    ]
