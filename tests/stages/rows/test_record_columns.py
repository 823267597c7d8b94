"""The kernel finds what kafka-python reads row by row, and refuses everything else."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecordsBuilder

from twinsieve.stages.rows.listed_records import headers_in
from twinsieve.stages.rows.record_columns import BatchFacts, RecordColumns, scan_records

_BYTES = st.none() | st.binary(max_size=20) | st.sampled_from([b"x" * 63, b"x" * 64, b"y" * 9_000])
_NAMES = st.sampled_from(["n", "é字", "twinsieve-", "twinsieve-origin", "twinsieve", ""])
_HEADERS = st.lists(st.tuples(_NAMES, _BYTES), max_size=3)
_TIMES = st.integers(0, 2**41)
_ROWS = st.lists(st.tuples(_TIMES, _BYTES, _BYTES, _HEADERS), max_size=12)
_HEADER = struct.Struct(">qiibIhiqqqhii")


def packed(rows: list[Any], base: int = 0) -> bytearray:
    """An uncompressed batch of these rows."""
    builder = MemoryRecordsBuilder(2, 0, 1 << 30)
    for row in rows:
        assert builder.append(*row) is not None
    builder.close()
    batch = bytearray(builder.buffer())
    struct.pack_into(">q", batch, 0, base)
    return batch


def facts_of(batch: bytearray) -> BatchFacts:
    """What the header of an uncompressed batch says."""
    base, _, epoch, _, _, attributes, _, first_ms, latest_ms, _, _, _, count = _HEADER.unpack_from(batch)
    return BatchFacts(
        len(batch) - _HEADER.size, base, epoch, count, first_ms, latest_ms, bool(attributes & 8)
    )


def contents(batches: Sequence[bytearray]) -> bytes:
    """The records of uncompressed batches, one behind the other."""
    return b"".join(batch[_HEADER.size :] for batch in batches)


def by_kernel(*batches: bytearray) -> list[tuple[Any, ...]] | None:
    """The rows that the kernel finds in uncompressed batches; None if it refuses them."""
    raw = contents(batches)
    found = scan_records(np.frombuffer(raw, np.uint8), [*map(facts_of, batches)], b"twinsieve-")
    if found is None:
        return None
    rows = []
    for row in range(len(found.offsets)):
        each = RecordColumns(*(column[row] for column in found))
        key, value = (
            None if size < 0 else raw[at : at + size]
            for at, size in ((each.key_at, each.key_sizes), (each.value_at, each.value_sizes))
        )
        at, size = int(each.headers_at), int(each.headers_sizes)
        headers = headers_in(memoryview(raw)[at : at + size], int(each.header_counts))
        marked = any(name.startswith("twinsieve-") for name, _ in headers)
        assert bool(each.marked) == marked
        rows.append((int(each.offsets), int(each.times_ms), key, value, list(headers)))
    return rows


def by_the_library(*batches: bytearray) -> list[tuple[Any, ...]] | None:
    """The rows that kafka-python reads; None if it reports damage."""
    try:
        return [
            (row.offset, row.timestamp, row.key, row.value, row.headers)
            for batch in batches
            for row in DefaultRecordBatch(batch)
        ]
    except CorruptRecordError:
        return None


def require_the_same(*batches: bytearray) -> None:
    """Check that kafka-python reads what the kernel finds, if it takes the batches."""
    found = by_kernel(*batches)
    # Names of headers that are no UTF-8 are an error of kafka-python, and are taken here.
    names = [name for row in found or () for name, _ in row[4]]
    if found is not None and not re.search("[\udc80-\udcff]", "".join(names)):
        assert found == by_the_library(*batches), [batch.hex() for batch in batches]


@given(_ROWS, st.integers(0, 2**40), st.booleans())
@example([(7, b"k", None, []), (2**41, None, b"v", [("twinsieve-x", None)])], 5, True)
def test_all_that_a_producer_writes_is_found(rows: list[Any], base: int, stamped: bool) -> None:
    batch = packed(rows, base) if rows else packed([(1, None, None, [])], base)
    if stamped:
        batch[22] |= 8
    found = by_kernel(batch)
    assert found is not None, "nothing of it is unusual"
    assert found == by_the_library(batch)


@given(_ROWS.filter(bool), st.data())
def test_a_changed_batch_is_refused_or_read_as_the_library_reads_it(rows: list[Any], data: Any) -> None:
    batch = packed(rows)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(
            st.integers(_HEADER.size, len(batch) - 1) | st.integers(27, 34) | st.integers(57, 60)
        )
        batch[place] = data.draw(st.integers(0, 255))
    require_the_same(batch)


@pytest.mark.parametrize(
    "content",
    [
        b"\x0e\x00\x00\x00\x01\x01\x00\x00",  # a byte behind the last record
        b"\x0c\x00\x00\x00\x01\x01",  # cut off
        b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",  # a number without an end
        b"\x0c\x00\x00\x00\xfe\xff\xff\xff\x0f\x01\x00",  # a key larger than the batch
        b"\x0c\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f",  # a billion headers
        b"\x8c\x00\x00\x00\x00\x01\x01\x00",  # a length with more bytes than it needs
        b"\x0c\x00\x00\x02\x01\x03\x00",  # a value of -2 bytes
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00",  # a record of -2^63 bytes
        b"\x20\x00\x00\x00\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00",  # a value of 2^63 - 1 bytes
    ],
)
def test_what_is_damaged_or_unusual_is_refused(content: bytes) -> None:
    facts = BatchFacts(len(content), 0, 0, 1, 0, 0, False)
    assert scan_records(np.frombuffer(content, np.uint8), [facts], b"twinsieve-") is None


@pytest.mark.parametrize(
    "facts",
    [
        BatchFacts(7, 0, 0, 1 << 31, 0, 0, False),
        BatchFacts(7, 0, 0, -1, 0, 0, False),
        BatchFacts(7, 0, 0, 2, 0, 0, False),
        BatchFacts(7, 0, 0, 0, 0, 0, False),
        BatchFacts(7, (1 << 63) - 1, 0, 1, 0, 0, False),
        BatchFacts(7, 0, 0, 1, -(1 << 63), 0, False),
    ],
)
def test_a_header_that_does_not_fit_its_records_is_refused(facts: BatchFacts) -> None:
    """The record has a time before the first one, and an offset behind the first one."""
    content = np.frombuffer(b"\x0c\x00\x01\x02\x01\x01\x00", np.uint8)
    assert scan_records(content, [BatchFacts(7, 0, 0, 1, 0, 0, False)], b"twinsieve-") is not None
    assert scan_records(content, [facts], b"twinsieve-") is None


@given(st.lists(st.tuples(_ROWS.filter(bool), st.booleans()), min_size=1, max_size=4))
def test_batches_together_are_found_as_each_alone(batches: list[tuple[list[Any], bool]]) -> None:
    contents, facts, alone, base, start = [], [], [], 7, 0
    for rows, stamped in batches:
        batch = packed(rows, base)
        batch[22] |= 8 * stamped
        _, _, epoch, _, _, _, _, first_ms, latest_ms, _, _, _, count = _HEADER.unpack_from(batch)
        content = bytes(batch[_HEADER.size :])
        facts.append(BatchFacts(len(content), base, epoch, count, first_ms, latest_ms, stamped))
        found = scan_records(np.frombuffer(content, np.uint8), facts[-1:], b"twinsieve-")
        assert found is not None
        alone.append(found.moved(start))
        contents.append(content)
        base, start = base + len(rows) + 3, start + len(content)
    together = scan_records(np.frombuffer(b"".join(contents), np.uint8), facts, b"twinsieve-")
    assert together is not None
    for column, parts in zip(together, zip(*alone, strict=True), strict=True):
        assert column.tolist() == np.concatenate(parts).tolist()


@pytest.mark.parametrize("base", [-1, 0])
def test_batches_whose_offsets_do_not_ascend_are_refused(base: int) -> None:
    content = b"\x0c\x00\x01\x02\x01\x01\x00" * 2
    facts = [BatchFacts(7, 0, 0, 1, 0, 0, False), BatchFacts(7, base, 0, 1, 0, 0, False)]
    assert scan_records(np.frombuffer(content, np.uint8), facts, b"twinsieve-") is None


@pytest.mark.parametrize("sizes", [(6, 8), (8, 6), (7, 6), (7, 8)])
def test_a_record_that_crosses_the_end_of_its_batch_is_refused(sizes: tuple[int, int]) -> None:
    content = b"\x0c\x00\x01\x02\x01\x01\x00" * 2
    facts = [BatchFacts(size, 9 * row, 0, 1, 0, 0, False) for row, size in enumerate(sizes)]
    assert scan_records(np.frombuffer(content, np.uint8), facts, b"twinsieve-") is None
