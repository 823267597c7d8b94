"""What a consumer takes out of a fetch is what kafka-python takes out of it, whatever the fetch holds."""

from __future__ import annotations

import struct
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from tests.examples import examples
from twinsieve.pipeline.broker.records import Records, UnreadableError
from twinsieve.pipeline.kafka import patches
from twinsieve.pipeline.kafka.patches import read_in_columns
from twinsieve.pipeline.kafka.record_batches import BatchGroup
from twinsieve.pipeline.kafka.unpack_batches import GZIP, LZ4, SNAPPY, ZSTD
from twinsieve.pipeline.settings import ConfigError

_AT = TopicPartition("posts", 3)
_BYTES = st.none() | st.binary(max_size=9)
# Names that are no UTF-8, which damage makes of others, are read here and not there.
_HEADERS = st.lists(st.tuples(st.sampled_from(["n", "two"]), _BYTES), max_size=2)
_ROW = st.tuples(st.integers(-1, 2**41), _BYTES, _BYTES, _HEADERS)
_BY_BROKER, _TRANSACTIONAL, _CONTROL = 8, 16, 32
_ABORT, _COMMIT = struct.pack(">hh", 0, 0), struct.pack(">hh", 0, 1)


class Batch(NamedTuple):
    """One batch of a fetch.

    gap: offsets that are missing before it; producer: of a transaction; ends: the marker that it is in place of
    rows; broken: the place of a byte to change, with a right checksum or not
    """

    rows: list[Any]
    codec: int
    gap: int
    attributes: int
    producer: int
    ends: bytes | None
    broken: tuple[int, bool] | None


_BATCH = st.builds(
    Batch,
    rows=st.lists(_ROW, min_size=1, max_size=4),
    codec=st.sampled_from([0, GZIP, SNAPPY, LZ4, ZSTD]),
    gap=st.sampled_from([0, 0, 3]),
    attributes=st.sampled_from([0, 0, _BY_BROKER, _TRANSACTIONAL, _TRANSACTIONAL]),
    producer=st.sampled_from([7, 8]),
    ends=st.sampled_from([None, None, None, _ABORT, _COMMIT]),
    broken=st.none() | st.tuples(st.integers(61, 200), st.booleans()),
)


def packed(batch: Batch, base: int) -> bytearray:
    """The batch as a broker sends it, from offset `base` on."""
    attributes = batch.attributes
    if batch.ends is not None:
        attributes = _TRANSACTIONAL | _CONTROL
    codec = 0 if batch.ends is not None else batch.codec
    builder = MemoryRecordsBuilder(2, codec, 1 << 20)
    if attributes & _TRANSACTIONAL:
        builder.set_producer_state(batch.producer, 0, 0, True)
    for row in batch.rows if batch.ends is None else [(1, batch.ends, b"\0" * 6, [])]:
        assert builder.append(*row) is not None
    builder.close()
    made = bytearray(builder.buffer())
    struct.pack_into(">q", made, 0, base)
    made[22] |= attributes
    if batch.broken is not None and batch.ends is None:
        place, is_sealed = batch.broken
        made[min(place, len(made) - 1)] ^= 0x55
        if is_sealed:
            return sealed(made)
        return made
    return sealed(made)


def sealed(batch: bytearray) -> bytearray:
    """The batch with a right checksum."""
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return batch


def theirs(content: bytes, first: int, aborted: list[Any]) -> tuple[list[Any], bool, int]:
    """Rows that kafka-python reads, whether it meets damage, and where it would fetch on."""
    part = Fetcher.PartitionRecords(
        first,
        _AT,
        MemoryRecords(content),
        isolation_level=IsolationLevel.READ_COMMITTED,
        aborted_transactions=aborted,
    )
    rows: list[Any] = []
    while part:
        try:
            rows += part.take()
        except Exception:  # noqa: BLE001 - each decompressor has errors of its own
            return rows, True, -1
    return rows, False, part.next_fetch_offset


def ours(
    content: bytes, first: int, aborted: list[Any], most: int, room: int
) -> tuple[list[Records], bool, int]:
    """The same of this project. most, room: records and bytes of one call"""
    consumer: Any = SimpleNamespace(_fetcher=SimpleNamespace(PartitionRecords=None))
    read_in_columns(consumer, 1 << 20)
    part = consumer._fetcher.PartitionRecords(
        first,
        _AT,
        MemoryRecords(content),
        isolation_level=IsolationLevel.READ_COMMITTED,
        aborted_transactions=aborted,
    )
    found: list[Records] = []
    while part:
        part.room = room
        try:
            taken = part.take(most)
        except UnreadableError as error:
            return found, True, -1 if error.offset >= first else error.offset
        assert sum(map(len, taken)) <= most
        found += taken
        if taken:
            assert part.next_fetch_offset == taken[-1].next_offset
    return found, False, part.next_fetch_offset


def _rows_of(found: list[Records]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for each in found:
        columns = each.offsets, each.timestamps_ms, each.keys, each.values, each.headers, each.epochs
        rows += [(*row[:4], list(row[4]), row[5]) for row in zip(*columns, strict=True)]
    return rows


@given(
    batches=st.lists(_BATCH, min_size=1, max_size=5),
    skipped=st.integers(0, 6),
    aborted=st.lists(st.tuples(st.sampled_from([7, 8]), st.integers(0, 9)), max_size=2),
    most=st.integers(1, 9) | st.just(1_000),
    room=st.integers(1, 60) | st.just(1 << 20),
)
@settings(deadline=None, max_examples=examples(400))
def test_a_fetch_is_read_as_kafka_python_reads_it(
    batches: list[Batch], skipped: int, aborted: list[tuple[int, int]], most: int, room: int
) -> None:
    base, content = 0, bytearray()
    for batch in batches:
        base += batch.gap
        content += packed(batch, base)
        base += len(batch.rows) if batch.ends is None else 1
    said = [SimpleNamespace(producer_id=producer, first_offset=first) for producer, first in aborted]
    whole, _, _ = theirs(bytes(content), 0, said)
    rows, is_damaged, after = theirs(bytes(content), skipped, said)
    # Offsets that do not ascend have a test of their own.
    assume(all(earlier.offset < later.offset for earlier, later in pairwise(whole)))
    found, is_refused, position = ours(bytes(content), skipped, said, most, room)
    assert _rows_of(found) == [
        (
            row.offset,
            min(max(row.timestamp, -1), (1 << 63) - 1),
            row.key,
            row.value,
            row.headers,
            row.leader_epoch,
        )
        for row in rows
    ]
    assert (is_refused, position) == (is_damaged, after)


@pytest.mark.parametrize(
    ("mark", "is_empty"), [(None, False), (b"", False), (_ABORT[:3], False), (b"", True)]
)
def test_a_mark_that_cannot_be_read_holds_the_partition_behind_what_came_before(
    mark: bytes | None, is_empty: bool
) -> None:
    before = packed(Batch([(1, b"k", b"v", [])], 0, 0, 0, 7, None, None), 0)
    builder = MemoryRecordsBuilder(2, 0, 1 << 20)
    builder.set_producer_state(7, 0, 0, True)
    builder.append(1, mark, b"", [])
    builder.close()
    ends = bytearray(builder.buffer())
    struct.pack_into(">q", ends, 0, 1)
    ends[22] |= _TRANSACTIONAL | _CONTROL
    if is_empty:
        ends[57:] = bytes(4)
        struct.pack_into(">i", ends, 8, len(ends) - 12)
    content = bytes(before + sealed(ends))
    rows, is_damaged, _ = theirs(content, 0, [])
    found, is_refused, _ = ours(content, 0, [], 9, 1 << 20)
    assert [row.value for row in rows] == [value for each in found for value in each.values] == [b"v"]
    assert is_refused
    assert is_damaged


@pytest.mark.parametrize(("delta", "time_ms"), [(1, (1 << 63) - 1), (-1, -1)])
def test_a_time_outside_int64_is_the_last_one_or_none(delta: int, time_ms: int) -> None:
    """kafka-python reads numbers of any size; here it is a dead letter, because no topic takes it."""
    first_ms = (1 << 63) - 1 if delta > 0 else -(1 << 63)
    builder = MemoryRecordsBuilder(2, 0, 1 << 20)
    builder.append(10, None, b"a", [])
    builder.append(10 + delta, None, b"b", [])
    builder.close()
    batch = bytearray(builder.buffer())
    struct.pack_into(">q", batch, 27, first_ms)
    found, is_refused, _ = ours(bytes(sealed(batch)), 0, [], 9, 1 << 20)
    assert not is_refused
    times = [time for each in found for time in each.timestamps_ms]
    assert times == [first_ms if delta > 0 else -1, time_ms]


def test_offsets_that_do_not_ascend_end_what_is_read() -> None:
    builder = MemoryRecordsBuilder(2, 0, 1 << 20)
    for value in (b"a", b"b", b"c"):
        builder.append(1, None, value, [])
    builder.close()
    batch = bytearray(builder.buffer())
    size = (len(batch) - 61) // 3
    batch[61 + 2 * size + 3] = 0  # the third record has the offset of the first
    found, is_refused, _ = ours(bytes(sealed(batch)), 0, [], 9, 1 << 20)
    assert is_refused
    assert [[*each.values] for each in found] == [[b"a", b"b"]]


def test_records_of_a_poll_lie_together_and_are_the_same() -> None:
    """`Records.joined` copies parts out of the batches that hold them."""
    content = b"".join(
        bytes(
            packed(
                Batch([(1, b"k", b"v%d" % number, [("n", b"h")])] * 3, LZ4, 0, 0, 7, None, None), 3 * number
            )
        )
        for number in range(4)
    )
    parts, _, _ = ours(content, 1, [], 2, 1 << 20)
    size = sum(end - begin for begin, end in (part.span for part in parts))
    whole = Records.joined(parts[0].partition, parts, np.empty(size + 9, np.uint8))
    assert _rows_of([whole]) == _rows_of(parts)
    assert whole.offsets == [*range(1, 12)]


def test_a_client_that_reads_batches_in_another_way_is_an_error_of_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patches.check_batches()

    class Other(BatchGroup):
        def decode(self) -> Records | None:
            found = super().decode()
            return None if found is None else found.slice(1, 2)

    monkeypatch.setattr(patches, "BatchGroup", Other)
    with pytest.raises(ConfigError, match="does not read a record batch as it was written"):
        patches.check_batches()
    monkeypatch.setattr(patches, "MemoryRecordsBuilder", lambda *_: object())
    with pytest.raises(ConfigError, match=r"AttributeError.*install 'kafka-python==3\.0\.12'"):
        patches.check_batches()
