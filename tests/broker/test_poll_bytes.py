"""One poll takes a bounded number of bytes, unpacked; what is left stays packed until the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.consumer.subscription_state import SubscriptionState
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from tests.examples import examples
from twinsieve.pipeline.kafka import record_batches
from twinsieve.pipeline.kafka.patches import bound_polls, free_paused_fetches, read_in_columns
from twinsieve.pipeline.kafka.unpack_batches import ZSTD, unpack
from twinsieve.pipeline.settings.client_buffers import ASIDE_BYTES, POLL_BYTES

_MIB = 1 << 20
_ONE, _TWO = TopicPartition("posts", 0), TopicPartition("posts", 1)
_LIMIT = 64 * _MIB
_POLL = 5_000


def batches(sizes: Sequence[Sequence[int]], codec: int = ZSTD) -> bytes:
    """One fetch: a batch of messages for each list, with values of these sizes; offsets begin at 0."""
    offset, packed = 0, b""
    for batch in sizes:
        builder = MemoryRecordsBuilder(2, codec, 1 << 30, offset)
        for size in batch:
            builder.append(timestamp=1, key=None, value=bytes(size))
        builder.close()
        packed += bytes(builder.buffer())
        offset += len(batch)
    return packed


class Consumer:
    """A consumer of kafka-python that has fetched all that it is given, and reaches no broker."""

    def __init__(self, fetches: dict[TopicPartition, bytes], max_bytes: int = POLL_BYTES) -> None:
        self._subscription = SubscriptionState()
        self._subscription.assign_from_user(list(fetches))
        fetcher: Any = Fetcher.__new__(Fetcher)
        fetcher._subscriptions = self._subscription
        fetcher._completed_fetches = deque()
        fetcher._paused_completed_fetches, fetcher._paused_partition_records = {}, {}
        fetcher._next_partition_records = fetcher._next_in_line_exception_metadata = None
        fetcher._sensors, fetcher.config = None, {"max_poll_records": _POLL}
        fetcher._parse_fetched_data = lambda part: part
        self._fetcher = fetcher
        read_in_columns(self, _LIMIT)  # type: ignore[arg-type]
        self._begin = bound_polls(self, max_bytes)  # type: ignore[arg-type]
        for at, packed in fetches.items():
            self.fetched(at, packed, 0)

    def fetched(self, at: TopicPartition, packed: bytes, offset: int) -> None:
        """A fetch from this offset on has come."""
        self._subscription.seek(at, offset)
        part = self._fetcher.PartitionRecords(offset, at, MemoryRecords(packed))
        part.partition, part.fetched_offset = at.partition, offset
        self._fetcher._completed_fetches.append(part)

    def pause(self, at: TopicPartition, *, paused: bool = True) -> None:
        (self._subscription.pause if paused else self._subscription.resume)(at)

    def poll(self, most: int = _POLL) -> dict[TopicPartition, list[int]]:
        """Offsets that one poll brings."""
        free_paused_fetches(self, ASIDE_BYTES)  # type: ignore[arg-type]
        self._begin()
        found, _ = self._fetcher.fetched_records(most)
        return {at: [offset for part in parts for offset in part.offsets] for at, parts in found.items()}

    def position(self, at: TopicPartition) -> int:
        held: int = self._subscription.assignment[at].position.offset
        return held


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of all batches that were unpacked."""
    sizes: list[int] = []

    def counted(codec: int, packed: bytes, max_bytes: int) -> bytes:
        whole = unpack(codec, packed, max_bytes)
        sizes.append(len(whole))
        return whole

    monkeypatch.setattr(record_batches, "unpack", counted)
    return sizes


def test_a_poll_ends_with_the_message_that_fills_it(unpacked: list[int]) -> None:
    consumer = Consumer({_ONE: batches([[_MIB] * 15] * 20)})
    found, polls = [], 0
    while rows := consumer.poll().get(_ONE, []):
        found += rows
        polls += 1
        assert len(rows) <= 17, "one message beyond"
        assert len(unpacked) <= 2 * polls
    assert found == list(range(300))
    assert len(unpacked) == 20, "none twice"


def test_a_batch_that_goes_on_with_large_messages_is_taken_as_a_whole(unpacked: list[int]) -> None:
    consumer = Consumer({_ONE: batches([[1] * 900 + [3 * _MIB] * 15, [3 * _MIB] * 15])})
    rows = consumer.poll()[_ONE]
    assert rows == list(range(len(rows)))
    assert len(rows) <= 915
    assert len(unpacked) == 1


def test_one_bound_holds_for_all_partitions_of_a_poll(unpacked: list[int]) -> None:
    consumer = Consumer({_ONE: batches([[20 * _MIB]]), _TWO: batches([[20 * _MIB]])})
    assert consumer.poll() == {_ONE: [0]}
    assert len(unpacked) == 1
    assert consumer.poll() == {_TWO: [0]}


def test_small_messages_are_polled_as_many_as_are_asked_for() -> None:
    consumer = Consumer({_ONE: batches([[100] * 400] * 10), _TWO: batches([[100] * 400] * 10)})
    assert {at: len(rows) for at, rows in consumer.poll().items()} == {_ONE: 4_000, _TWO: 1_000}


def test_a_paused_partition_keeps_no_large_batch_unpacked_and_goes_on() -> None:
    sizes = [[_MIB] * 30, [100] * 5]
    consumer = Consumer({_ONE: batches(sizes), _TWO: batches(sizes)})
    assert consumer.poll(7) == {_ONE: list(range(7))}
    consumer.pause(_ONE)
    assert consumer.poll(7) == {_TWO: list(range(7))}
    consumer.pause(_TWO)
    assert consumer.poll() == {}
    fetcher = consumer._fetcher
    kept = [fetcher._next_partition_records, *fetcher._paused_partition_records.values()]
    assert not any(part.unpacked_bytes > ASIDE_BYTES for part in kept if part)
    consumer.pause(_ONE, paused=False)
    assert consumer.poll() == {}, "it is fetched again"
    assert consumer.position(_ONE) == 7
    consumer.fetched(_ONE, batches(sizes), 7)
    found = [row for _ in range(3) for row in consumer.poll().get(_ONE, [])]
    assert found == list(range(7, 35))


def test_a_paused_partition_keeps_a_usual_batch() -> None:
    consumer = Consumer({_ONE: batches([[100] * 400, [100] * 10])})
    assert consumer.poll(7) == {_ONE: list(range(7))}
    consumer.pause(_ONE)
    assert consumer.poll() == {}
    consumer.pause(_ONE, paused=False)
    assert consumer.poll() == {_ONE: list(range(7, 410))}


def test_what_a_batch_held_is_forgotten_when_its_last_message_is_out() -> None:
    consumer = Consumer({_ONE: batches([[20 * _MIB], [1]])})
    assert consumer.poll() == {_ONE: [0]}
    assert consumer._fetcher._next_partition_records.unpacked_bytes == 0


@given(
    sizes=st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=6), min_size=1, max_size=6),
    codec=st.sampled_from([0, 1, ZSTD]),
    asked=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    limit=st.integers(1, 900),
    first=st.integers(0, 8),
)
@settings(deadline=None, max_examples=examples(100))
def test_all_messages_come_in_order_whatever_a_poll_may_take(
    sizes: list[list[int]], codec: int, asked: list[int], limit: int, first: int
) -> None:
    count = sum(map(len, sizes))
    first %= count
    consumer = Consumer({_ONE: b""}, limit)
    consumer._fetcher._completed_fetches.clear()
    consumer.fetched(_ONE, batches(sizes, codec), first)
    found: list[int] = []
    for turn in range(2 * count + len(sizes) + 2):
        rows = consumer.poll(asked[turn % len(asked)]).get(_ONE, [])
        assert len(rows) <= asked[turn % len(asked)]
        found += rows
    assert found == list(range(first, count))
    assert consumer.position(_ONE) == count
