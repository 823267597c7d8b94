"""Reading with kafka-python: partitions one names oneself, and shares of a group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition, errors

from pipeline.kafka.deadline import DeadlineError, within
from pipeline.kafka.noise import fenced_members
from pipeline.kafka.python_admin import PythonAdmin
from pipeline.kafka.python_options import connected, translated
from pipeline.ports import (
    NO_TIMESTAMP,
    AbortableError,
    Committed,
    FatalError,
    Membership,
    Partition,
    Polled,
    Records,
)
from pipeline.settings import KafkaSettings
from stages.errors import BrokerError

_LOOKUP_MS = 10_000
_CLOSE_MS = 3_000
_FETCH_BYTES = 4 << 20


def _consumer(settings: KafkaSettings, options: Mapping[str, Any], **more: Any) -> KafkaConsumer:
    return connected(
        settings,
        lambda network: KafkaConsumer(
            **options,
            kafka_client=network,
            **more,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            # The default of 500 makes transactions of 500 messages, at a third of the speed.
            max_poll_records=settings.poll_messages,
            max_partition_fetch_bytes=max(_FETCH_BYTES, settings.message_bytes),
            fetch_max_wait_ms=100,
            metrics_enabled=False,
        ),
    )


class _Reading:
    """What both kinds of consumer share: a partition is silent until its first `seek`.

    kafka-python would otherwise look up committed offsets by itself and deliver from there. A silent
    partition is paused at offset 0, so that the client has a position and asks nobody for one.
    """

    def __init__(self, consumer: KafkaConsumer, admin: Callable[[], PythonAdmin]) -> None:
        self._consumer = consumer
        self._admin = admin
        self._lock = threading.RLock()
        self._live: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()

    def _silence(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._consumer.pause(partition)
            self._consumer.seek(partition, 0)

    def _start(self, partition: TopicPartition, offset: int) -> None:
        self._consumer.seek(partition, offset)
        self._live.add(partition)
        if partition not in self._paused:
            self._consumer.resume(partition)

    def _fetched(self, timeout_s: float, max_records: int) -> dict[TopicPartition, list[Any]]:
        # A partition that is paused with a part of a fetch still undelivered has that part put aside, and
        # gets it back only while this slot is None. Once used the slot holds an exhausted object instead,
        # so that the partition stays silent for ever after resume(). There is no public way to clear it.
        fetcher = self._consumer._fetcher
        if not fetcher._next_partition_records:
            fetcher._next_partition_records = None
        with _errors("reading"):
            found: dict[TopicPartition, list[Any]] = self._consumer.poll(
                timeout_ms=max(0, int(timeout_s * 1000)), max_records=max_records
            )
        return found

    def position(self, partition: Partition) -> int:
        """As `ports.Reader.position`."""
        with _errors(f"position of {partition}"):
            position = self._consumer.position(TopicPartition(*partition), timeout_ms=_LOOKUP_MS)
        if position is None:
            raise AbortableError(f"position of {partition}: the broker does not tell")
        return int(position)

    def pause(self, partitions: Collection[Partition]) -> None:
        """As `ports.Reader.pause`."""
        with self._lock:
            for partition in _known(self._consumer, partitions):
                self._paused.add(partition)
                self._consumer.pause(partition)

    def resume(self, partitions: Collection[Partition]) -> None:
        """As `ports.Reader.resume`."""
        with self._lock:
            for partition in _known(self._consumer, partitions):
                self._paused.discard(partition)
                if partition in self._live:
                    self._consumer.resume(partition)

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """As `ports.Reader.beginning_offsets`."""
        with _abortable():
            return self._admin().beginning_offsets(partitions)

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """As `ports.Reader.end_offsets`."""
        # The consumer's own end_offsets asks for a missing topic again and again until its time is up.
        with _abortable():
            return self._admin().stable_offsets(partitions)

    def close(self) -> None:
        """As `ports.Reader.close`."""
        try:
            self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MS)
        except (errors.KafkaError, RuntimeError):
            # RuntimeError: the network loop of a consumer that never connected is already gone.
            return


class PythonReader(_Reading):
    """`ports.Reader` on kafka-python."""

    def __init__(
        self, settings: KafkaSettings, options: Mapping[str, Any], admin: Callable[[], PythonAdmin]
    ) -> None:
        super().__init__(_consumer(settings, options, group_id=None), admin)

    def assign(self, partitions: Collection[Partition]) -> None:
        """As `ports.Reader.assign`."""
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

    def seek(self, partition: Partition, offset: int) -> None:
        """As `ports.Reader.seek`."""
        self._start(TopicPartition(*partition), offset)

    def poll(self, timeout_s: float, max_records: int) -> list[Records]:
        """As `ports.Reader.poll`."""
        found = self._fetched(timeout_s, max_records)
        return [_columns(partition, rows) for partition, rows in found.items() if partition in self._live]


@dataclass(frozen=True, slots=True)
class PythonMember:
    """What `ports.Membership.handle` is here.

    consumer: commits offsets where there are no transactions; fenced: whether another process displaced it
    """

    metadata: Any
    consumer: Any
    fenced: Callable[[], bool]


class PythonGroupConsumer(_Reading):
    """`ports.GroupConsumer` on kafka-python.

    Rebalance callbacks run on the client's network thread, where every blocking call raises; they set
    flags and silence partitions, nothing else. The role learns of it by the epoch of its next poll.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        options: Mapping[str, Any],
        admin: Callable[[], PythonAdmin],
        group: str,
        topics: Sequence[str],
        member: str | None,
    ) -> None:
        super().__init__(
            _consumer(
                settings,
                options,
                group_id=group,
                group_instance_id=member,
                session_timeout_ms=settings.session_timeout_ms,
                heartbeat_interval_ms=max(500, settings.session_timeout_ms // 4),
            ),
            admin,
        )
        self._member = member
        self._network_thread: int | None = None
        self._epoch = 0
        self._seen_epoch = 0
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._consumer.subscribe(list(topics), listener=_Listener(self))
        self._know(topics)

    def _know(self, topics: Sequence[str]) -> None:
        # A leader that does not know a topic's partitions yet assigns none of them, and may notice only when
        # its metadata is refreshed, minutes later: everybody knows them before joining.
        for topic in topics:
            try:
                within(_LOOKUP_MS / 1000, partial(self._consumer.partitions_for_topic, topic))
            except (errors.KafkaError, DeadlineError) as error:
                self.close()
                raise AbortableError(f"partitions of {topic}: the broker does not tell ({error})") from error

    def is_fenced(self) -> bool:
        """True once another process has joined under this member's name."""
        return self._network_thread is not None and fenced_members.holds(self._network_thread)

    def rebalanced(self, assigned: Iterable[TopicPartition]) -> None:
        """Called on the network thread: these are ours now, silent until sought."""
        with self._lock:
            thread = threading.get_ident()
            if self._network_thread != thread:
                self._network_thread = thread
                fenced_members.forget(thread)
            self._epoch += 1
            self._live.clear()
            self._paused.clear()
            self._assigned = frozenset(assigned)
            self._silence(self._assigned)

    def poll(self, timeout_s: float, max_records: int) -> Polled:
        """As `ports.GroupConsumer.poll`."""
        if self.is_fenced():
            raise FatalError(f"member {self._member}: another process runs under this name", fenced=True)
        found = self._fetched(timeout_s, max_records)
        # The membership is taken here, before the epoch is read: after max_poll_interval_ms kafka-python
        # leaves the group by itself, and what group_metadata() says then is accepted by the broker even
        # though another member owns the partitions. A rebalance raises the epoch before it changes the
        # membership, so records, membership and epoch of different times never come together.
        metadata = self._consumer.group_metadata()
        with self._lock:
            self._seen_epoch = self._epoch
            assignment = frozenset(Partition(*partition) for partition in self._assigned)
            live = [(partition, rows) for partition, rows in found.items() if partition in self._live]
        records = [_columns(partition, rows) for partition, rows in live]
        membership = Membership(
            metadata.generation_id, PythonMember(metadata, self._consumer, self.is_fenced)
        )
        return Polled(membership, assignment, self._seen_epoch, records)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        """As `ports.GroupConsumer.committed`."""
        found: dict[Partition, Committed | None] = {}
        for partition in partitions:
            with _errors(f"committed offset of {partition}"):
                # One at a time: the client has no public call for many.
                held = self._consumer.committed(
                    TopicPartition(*partition), metadata=True, timeout_ms=_LOOKUP_MS
                )
            found[partition] = None if held is None else Committed(held.offset, held.metadata or "")
        return found

    def seek(self, partition: Partition, offset: int) -> None:
        """As `ports.GroupConsumer.seek`; ignored too when a rebalance has come since the last poll."""
        key = TopicPartition(*partition)
        with self._lock:
            if self._epoch == self._seen_epoch and key in self._assigned:
                self._start(key, offset)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, owner: PythonGroupConsumer) -> None:
        self._owner = owner

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:  # noqa: ARG002
        self._owner.rebalanced(())

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._owner.rebalanced(assigned)

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:  # noqa: ARG002
        self._owner.rebalanced(())


def _known(consumer: KafkaConsumer, partitions: Collection[Partition]) -> list[TopicPartition]:
    ours = consumer.assignment()
    return [key for key in (TopicPartition(*partition) for partition in partitions) if key in ours]


def _columns(partition: TopicPartition, rows: Sequence[Any]) -> Records:
    return Records(
        Partition(partition.topic, partition.partition),
        [row.offset for row in rows],
        [NO_TIMESTAMP if row.timestamp is None or row.timestamp < 0 else row.timestamp for row in rows],
        [row.key for row in rows],
        [row.value for row in rows],
        [row.headers for row in rows],
    )


@contextmanager
def _errors(doing: str) -> Iterator[None]:
    try:
        yield
    except errors.KafkaError as error:
        raise translated(error, doing) from error


@contextmanager
def _abortable() -> Iterator[None]:
    try:
        yield
    except BrokerError as error:
        raise AbortableError(str(error)) from error
