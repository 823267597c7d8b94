"""The base class of both consumers, and the reader of chosen partitions outside any group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

from kafka import KafkaConsumer, TopicPartition, errors

from twinsieve.pipeline.broker.records import (
    NO_EPOCH,
    AbortableError,
    BrokerError,
    Partition,
    Records,
    TruncatedError,
)
from twinsieve.pipeline.kafka.access import Access
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.errors import translating
from twinsieve.pipeline.kafka.options import connected
from twinsieve.pipeline.kafka.patches import (
    bound_polls,
    free_paused_fetches,
    read_in_columns,
    seek_with_epoch,
)
from twinsieve.pipeline.settings.client_buffers import ASIDE_BYTES, POLL_BYTES, partition_bytes

_CLOSE_MS = 3_000


def make_consumer(access: Access, **more: Any) -> KafkaConsumer:
    """A read-committed consumer that never commits or resets an offset by itself.

    raises: BrokerError when no broker can be reached
    """
    settings = access.settings
    return connected(
        settings,
        KafkaConsumer,
        **access.options,
        **more,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        # The default of 500 would lead to transactions of 500 messages, at a third of the speed.
        max_poll_records=settings.poll_messages,
        max_partition_fetch_bytes=partition_bytes(settings),
        fetch_max_wait_ms=100,
        metrics_enabled=False,
    )


class PartitionConsumer(Client):
    """Base class of both consumers: a partition delivers nothing before its first `seek`.

    By itself kafka-python would look up the committed offset and deliver from there. To prevent that, a
    partition is paused at offset 0 until its first seek, so the client has a position and requests none.

    Beginning and end offsets come from an admin client: the consumer's own calls wait until their time limit
    if a topic is missing.
    """

    def __init__(self, access: Access, **own: Any) -> None:
        self._admin = access.admin
        self._consumer = make_consumer(access, **own)
        read_in_columns(self._consumer, access.settings.max_unpacked_bytes)
        self._clock = access.clock
        self._arenas = access.arenas
        self._begin_poll = bound_polls(self._consumer, POLL_BYTES)
        self._lock = threading.RLock()
        self._live: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._later: TruncatedError | None = None
        """An error that the next poll raises, too."""

    def _silence(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._consumer.pause(partition)
            self._consumer.seek(partition, 0)

    def _start(self, partition: TopicPartition, offset: int, epoch: int = NO_EPOCH) -> None:
        self._consumer.seek(partition, offset)
        if epoch != NO_EPOCH:
            seek_with_epoch(self._consumer, partition, offset, epoch)
        self._live.add(partition)
        if partition not in self._paused:
            self._consumer.resume(partition)

    def _fetched(self, timeout_s: float, max_records: int) -> dict[TopicPartition, list[Records]]:
        # In one statement, because a rebalance on the network thread may drop the error meanwhile.
        error, self._later = self._later, None
        if error is not None:
            raise error
        free_paused_fetches(self._consumer, ASIDE_BYTES)
        self._begin_poll()
        with translating("reading"):
            polled: dict[TopicPartition, list[Records]] = self._consumer.poll(
                timeout_ms=max(0, int(timeout_s * 1000)), max_records=max_records
            )
        return polled

    def _joined(self, polled: Iterable[tuple[TopicPartition, Sequence[Records]]]) -> list[Records]:
        """The records of each partition, copied together out of their batches; the broker clock reads their
        timestamps."""
        joined = []
        for partition, parts in polled:
            size = sum(end - begin for begin, end in (part.span for part in parts))
            records = Records.joined(Partition(*partition), parts, self._arenas.take(size))
            self._clock.read(records)
            joined.append(records)
        return joined

    def position(self, partition: Partition) -> int:
        try:
            with translating(f"position of {partition}"):
                # The client knows the position, because every partition that is read was sought. With a
                # longer time-out kafka-python would request the epochs of all partitions from their leaders,
                # and wait for a dead leader.
                position = self._consumer.position(TopicPartition(*partition), timeout_ms=0)
        except TruncatedError as error:
            # kafka-python raises this error once, for any partition, and continues afterwards. The next poll
            # must raise it too, so keep it.
            self._later = error
            raise
        if position is None:
            raise AbortableError(f"position of {partition}: it is not known")
        return int(position)

    def pause(self, partitions: Collection[Partition]) -> None:
        with self._lock:
            for partition in _assigned_of(self._consumer, partitions):
                self._paused.add(partition)
                self._consumer.pause(partition)

    def resume(self, partitions: Collection[Partition]) -> None:
        with self._lock:
            for partition in _assigned_of(self._consumer, partitions):
                self._paused.discard(partition)
                if partition in self._live:
                    self._consumer.resume(partition)

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._query(lambda admin: admin.beginning_offsets(partitions))

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._query(lambda admin: admin.stable_offsets(partitions))

    def _query(self, question: Callable[[KafkaAdmin], dict[Partition, int]]) -> dict[Partition, int]:
        try:
            return question(self._admin())
        except BrokerError as error:
            raise AbortableError(str(error)) from error

    def close(self) -> None:
        self.closed = True
        # RuntimeError: the consumer was already closed, or it never connected and its network loop has ended.
        with suppress(errors.KafkaError, RuntimeError):
            self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MS)


class KafkaReader(PartitionConsumer):
    """`ports.Reader` on kafka-python."""

    def __init__(self, access: Access) -> None:
        super().__init__(access, group_id=None)

    def assign(self, partitions: Collection[Partition]) -> None:
        wanted = {TopicPartition(*partition) for partition in partitions}
        before: set[TopicPartition] = set(self._consumer.assignment())
        if wanted == before:
            return
        kept = {
            partition: self._consumer.position(partition, timeout_ms=0) for partition in wanted & self._live
        }
        self._live &= wanted
        self._paused &= wanted
        self._consumer.assign(sorted(wanted))
        self._silence(wanted - before)
        for partition, offset in kept.items():
            self._start(partition, offset)

    def seek(self, partition: Partition, offset: int, epoch: int = NO_EPOCH) -> None:
        self._start(TopicPartition(*partition), offset, epoch)

    def poll(self, timeout_s: float, max_records: int) -> list[Records]:
        polled = self._fetched(timeout_s, max_records)
        return self._joined((part, rows) for part, rows in polled.items() if part in self._live)


def _assigned_of(consumer: KafkaConsumer, partitions: Collection[Partition]) -> list[TopicPartition]:
    ours = consumer.assignment()
    return [key for key in (TopicPartition(*partition) for partition in partitions) if key in ours]
