"""Reading with kafka-python: what every consumer shares, and reading chosen partitions outside any group."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaConsumer, TopicPartition, errors

from twinsieve.pipeline.broker.records import (
    NO_EPOCH,
    NO_TIMESTAMP,
    AbortableError,
    Committed,
    Partition,
    Records,
    TruncatedError,
)
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.deadline import METADATA_S
from twinsieve.pipeline.kafka.kafka_python.options import ERRORS, connected, reason
from twinsieve.pipeline.kafka.kafka_python.patches import (
    bound_polls,
    decode_safely,
    free_paused_fetches,
    seek_with_epoch,
)
from twinsieve.pipeline.kafka.reading import PartitionConsumer
from twinsieve.pipeline.settings.client_buffers import ASIDE_BYTES, POLL_BYTES, partition_bytes

_CLOSE_MS = 3_000
_LOG_APPEND_TIME = 1


def make_consumer(access: Access, **more: Any) -> KafkaConsumer:
    """A read-committed consumer that commits and resets nothing by itself.

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
        # The default of 500 makes transactions of 500 messages, at a third of the speed.
        max_poll_records=settings.poll_messages,
        max_partition_fetch_bytes=partition_bytes(settings),
        fetch_max_wait_ms=100,
        metadata_max_age_ms=int(METADATA_S * 1000),
        metrics_enabled=False,
    )


def committed_of(offset: int, metadata: str | None) -> Committed:
    """A committed offset with its text, whichever client wrote it.

    confluent-kafka 2.16 ends the text with the NUL of its C string. librdkafka reads up to it, kafka-python
    reads it too. Upstream issue: none found.
    """
    return Committed(offset, (metadata or "").removesuffix("\0"))


class PythonConsumer(PartitionConsumer):
    """What both kinds of consumer share: a partition is silent until its first `seek`.

    kafka-python would otherwise look up committed offsets by itself and deliver from there. A silent
    partition is paused at offset 0, so that the client has a position and requests none.
    """

    def __init__(self, access: Access, **own: Any) -> None:
        super().__init__(access.admin, ERRORS)
        self._consumer = make_consumer(access, **own)
        decode_safely(self._consumer, access.settings.max_unpacked_bytes)
        self._clock = access.clock
        self._begin_poll = bound_polls(self._consumer, POLL_BYTES)
        self._lock = threading.RLock()
        self._live: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._later: TruncatedError | None = None

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

    def _fetched(self, timeout_s: float, max_records: int) -> dict[TopicPartition, list[Any]]:
        if self._later is not None:
            error, self._later = self._later, None
            raise error
        free_paused_fetches(self._consumer, ASIDE_BYTES)
        self._begin_poll()
        with errors_of("reading"):
            polled: dict[TopicPartition, list[Any]] = self._consumer.poll(
                timeout_ms=max(0, int(timeout_s * 1000)), max_records=max_records
            )
        return polled

    def _columns(self, polled: Iterable[tuple[TopicPartition, Sequence[Any]]]) -> list[Records]:
        """The records of these partitions."""
        batches = [columns(partition, rows) for partition, rows in polled]
        for records in batches:
            self._clock.read(records)
        return batches

    def position(self, partition: Partition) -> int:
        try:
            with errors_of(f"position of {partition}"):
                # It is known here, for all that is read was sought. With more time kafka-python would ask the
                # leaders of all partitions for their epochs, and wait for one that is dead.
                position = self._consumer.position(TopicPartition(*partition), timeout_ms=0)
        except TruncatedError as error:
            # kafka-python raises it once, for any partition, and then continues: the next poll must raise it
            # too.
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

    def _end(self) -> None:
        self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MS)


class PythonReader(PythonConsumer):
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
        return self._columns((part, rows) for part, rows in polled.items() if part in self._live)


def _assigned_of(consumer: KafkaConsumer, partitions: Collection[Partition]) -> list[TopicPartition]:
    ours = consumer.assignment()
    return [key for key in (TopicPartition(*partition) for partition in partitions) if key in ours]


def columns(partition: TopicPartition, rows: Sequence[Any]) -> Records:
    """The records of one partition as the port wants them."""
    return Records(
        Partition(partition.topic, partition.partition),
        [row.offset for row in rows],
        [NO_TIMESTAMP if row.timestamp is None or row.timestamp < 0 else row.timestamp for row in rows],
        [row.key for row in rows],
        [row.value for row in rows],
        [row.headers for row in rows],
        [row.leader_epoch for row in rows],
        rows[0].timestamp_type == rows[-1].timestamp_type == _LOG_APPEND_TIME,
    )


@contextmanager
def errors_of(doing: str) -> Iterator[None]:
    """The client's errors inside become the port's; `doing` says what failed where."""
    with ERRORS.translating(doing):
        try:
            yield
        except errors.LogTruncationError as error:
            # It is raised once for all partitions in which it was noticed; one is enough to stop.
            partition = Partition(*min(error.divergent_offsets))
            raise TruncatedError(partition, f"{doing}: {reason(error)}") from error
