"""Reading with confluent-kafka: partitions one names oneself, and shares of a group."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.kafka.confluent_admin import ConfluentAdmin
from pipeline.kafka.confluent_options import Heard, raise_fatal, translated
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

_LOOKUP_S = 10.0
_SEEK_S = 5.0
_FETCH_BYTES = 4 << 20
_MOST = 1_000_000
_MAGIC = b"CGMDv2:"
_PASSING = (KafkaError._STATE, KafkaError._UNKNOWN_PARTITION, KafkaError._TIMED_OUT)
_NO_NEWS = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT)


def _options(settings: KafkaSettings, options: Mapping[str, Any], heard: Heard) -> dict[str, Any]:
    return {
        **options,
        **heard.options(),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": False,
        # By default a full local queue is looked at again only after a second: 150,000 instead of
        # 800,000 messages/s.
        "fetch.queue.backoff.ms": 5,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 50,
        "max.partition.fetch.bytes": max(_FETCH_BYTES, settings.message_bytes),
        "topic.metadata.refresh.interval.ms": 60_000,
    }


class _Reading:
    """What both kinds of consumer share: grouping messages into columns, positions, pauses."""

    def __init__(self, options: dict[str, Any], heard: Heard, admin: Callable[[], ConfluentAdmin]) -> None:
        self._heard = heard
        self._admin = admin
        self._live: dict[Partition, int] = {}
        self._paused: set[Partition] = set()
        self._stopped: set[Partition] = set()
        self._later: BrokerError | None = None
        self._consumer = Consumer(options)

    def _fetched(self, timeout_s: float, max_records: int) -> list[Records]:
        if self._later is not None:
            error = self._later
            if not isinstance(error, FatalError):
                self._later = None
            raise error
        deadline = time.monotonic() + timeout_s
        while True:
            # consume(n, t) waits the whole of t for n messages; the first one must not wait for others.
            messages = self._consume(1, max(0.0, deadline - time.monotonic()))
            if messages and max_records > 1:
                messages += self._consume(min(max_records - 1, _MOST), 0)
            records = self._columns(messages)
            # An end of partition is no record, so it does not end the wait either.
            if records or self._later is not None or time.monotonic() >= deadline:
                return records

    def _consume(self, count: int, timeout_s: float) -> list[Any]:
        try:
            messages: list[Any] = self._consumer.consume(count, timeout_s)
        except KafkaException as error:
            # The exception says only "fatal"; what it was came to the error callback.
            raise_fatal(self._heard, "reading")
            raise translated(error, "reading") from error
        raise_fatal(self._heard, "reading")
        return messages

    def _columns(self, messages: list[Any]) -> list[Records]:
        found: dict[Partition, Records] = {}
        last: tuple[str, int] | None = None
        wanted = 0
        records: Records | None = None
        for message in messages:
            error = message.error()
            if error is not None:
                self._notice(message, error)
                continue
            here = message.topic(), message.partition()
            if here != last:
                last, partition = here, Partition(*here)
                wanted, records = self._live.get(partition, 0), None
                if partition in self._live:
                    records = found.setdefault(partition, Records(partition))
            offset = message.offset()
            if records is None or offset < wanted:
                continue
            kind, stamp = message.timestamp()
            records.offsets.append(offset)
            records.timestamps_ms.append(stamp if kind and stamp >= 0 else NO_TIMESTAMP)
            records.keys.append(message.key())
            records.values.append(message.value())
            records.headers.append(message.headers() or ())
        held = [records for records in found.values() if len(records)]
        for records in held:
            self._passed(records.partition, records.offsets[-1] + 1)
        return held

    def _passed(self, partition: Partition, offset: int) -> None:
        if offset > self._live.get(partition, offset):
            self._live[partition] = offset

    def _notice(self, message: Any, error: KafkaError) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            # librdkafka's own position stays behind the last message; this offset is past control markers.
            self._passed(Partition(message.topic(), message.partition()), message.offset())
            return
        if error.code() in _NO_NEWS:
            return
        where = f"reading {message.topic()}[{message.partition()}]" if message.topic() else "reading"
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._stopped.add(Partition(message.topic(), message.partition()))
        # Messages that came in the same call are delivered first; the error is the next poll's.
        wrapped = KafkaException(error)
        later = translated(wrapped, where)
        later.__cause__ = wrapped
        if not isinstance(self._later, FatalError):
            self._later = later

    def _seek(self, partition: Partition, offset: int) -> None:
        if partition in self._stopped:
            # After an offset out of range librdkafka gives a partition up and refuses to seek in it.
            self._stopped.discard(partition)
            self._live[partition] = offset
            self._restart(partition)
            return
        deadline = time.monotonic() + _SEEK_S
        target = TopicPartition(partition.topic, partition.number, offset)
        # A partition that was assigned a moment ago is not yet "actively consumed" and refuses.
        while True:
            try:
                self._consumer.seek(target)
                break
            except KafkaException as error:
                if error.args[0].code() not in _PASSING or time.monotonic() >= deadline:
                    raise translated(error, f"seek {partition}") from error
                time.sleep(0.01)
        self._live[partition] = offset

    def position(self, partition: Partition) -> int:
        """As `ports.Reader.position`."""
        if partition not in self._live:
            raise AbortableError(f"position of {partition}: nothing was sought there")
        return self._live[partition]

    def pause(self, partitions: Collection[Partition]) -> None:
        """As `ports.Reader.pause`."""
        ours = [partition for partition in partitions if self._owns(partition)]
        self._paused.update(ours)
        self._consumer.pause([TopicPartition(*p) for p in ours if p in self._live])

    def resume(self, partitions: Collection[Partition]) -> None:
        """As `ports.Reader.resume`."""
        ours = [partition for partition in partitions if partition in self._paused]
        self._paused.difference_update(ours)
        self._consumer.resume([TopicPartition(*p) for p in ours if p in self._live])

    def _owns(self, partition: Partition) -> bool:
        raise NotImplementedError

    def _restart(self, partition: Partition) -> None:
        raise NotImplementedError

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """As `ports.Reader.beginning_offsets`."""
        with _abortable():
            return self._admin().beginning_offsets(partitions)

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """As `ports.Reader.end_offsets`."""
        with _abortable():
            return self._admin().stable_offsets(partitions)

    def close(self) -> None:
        """As `ports.Reader.close`."""
        try:
            self._consumer.close()
        except (KafkaException, RuntimeError):
            # RuntimeError: closed before.
            return


class ConfluentReader(_Reading):
    """`ports.Reader` on confluent-kafka. A partition is handed to librdkafka at its first `seek`."""

    def __init__(
        self, settings: KafkaSettings, options: Mapping[str, Any], admin: Callable[[], ConfluentAdmin]
    ) -> None:
        heard = Heard()
        # librdkafka wants a group id even where no group is meant; it is never joined or committed to.
        super().__init__({**_options(settings, options, heard), "group.id": "twinsieve-reader"}, heard, admin)
        self._wanted: set[Partition] = set()

    def assign(self, partitions: Collection[Partition]) -> None:
        """As `ports.Reader.assign`."""
        self._wanted = set(partitions)
        gone = [partition for partition in self._live if partition not in self._wanted]
        if gone:
            self._consumer.incremental_unassign([TopicPartition(*partition) for partition in gone])
        for partition in gone:
            del self._live[partition]
        self._paused &= self._wanted

    def seek(self, partition: Partition, offset: int) -> None:
        """As `ports.Reader.seek`."""
        if partition not in self._wanted:
            return
        if partition in self._live:
            self._seek(partition, offset)
            return
        target = TopicPartition(partition.topic, partition.number, offset)
        with _errors(f"seek {partition}"):
            self._consumer.incremental_assign([target])
            if partition in self._paused:
                self._consumer.pause([target])
        self._live[partition] = offset

    def poll(self, timeout_s: float, max_records: int) -> list[Records]:
        """As `ports.Reader.poll`."""
        return self._fetched(timeout_s, max_records)

    def _owns(self, partition: Partition) -> bool:
        return partition in self._wanted

    def _restart(self, partition: Partition) -> None:
        target = TopicPartition(*partition, self._live[partition])
        with _errors(f"seek {partition}"):
            self._consumer.incremental_unassign([target])
            self._consumer.incremental_assign([target])
            if partition in self._paused:
                self._consumer.pause([target])


@dataclass(frozen=True, slots=True)
class ConfluentMember:
    """What `ports.Membership.handle` is here.

    consumer: commits offsets where there are no transactions; fenced: whether another process displaced it
    """

    metadata: bytes
    consumer: Any
    fenced: Callable[[], bool]


class ConfluentGroupConsumer(_Reading):
    """`ports.GroupConsumer` on confluent-kafka; assigned partitions are paused until they are sought."""

    def __init__(
        self,
        settings: KafkaSettings,
        options: Mapping[str, Any],
        admin: Callable[[], ConfluentAdmin],
        group: str,
        topics: Sequence[str],
        member: str | None,
    ) -> None:
        heard = Heard()
        own: dict[str, Any] = {
            "group.id": group,
            "session.timeout.ms": settings.session_timeout_ms,
            "heartbeat.interval.ms": max(500, settings.session_timeout_ms // 4),
            # The same as kafka-python's, so that both clients can serve in one group.
            "partition.assignment.strategy": "range,roundrobin",
        }
        if member is not None:
            own["group.instance.id"] = member
        super().__init__({**_options(settings, options, heard), **own}, heard, admin)
        self._member = member
        self._epoch = 0
        self._assigned: frozenset[Partition] = frozenset()
        self._closing = False
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_gone, on_lost=self._on_gone
        )

    def is_fenced(self) -> bool:
        """True once another process has joined under this member's name; costs what was fetched ahead."""
        if not isinstance(self._later, FatalError):
            # librdkafka tells only who polls. Messages are of no use any more: the producer is finished.
            with suppress(BrokerError):
                self._columns(self._consume(1, 0.05))
        return isinstance(self._later, FatalError) and self._later.fenced

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        self._moved()
        self._assigned = frozenset(Partition(part.topic, part.partition) for part in partitions)
        # Offset 0 keeps librdkafka from looking up committed offsets; the pause keeps it from reading.
        start = [TopicPartition(part.topic, part.partition, 0) for part in partitions]
        consumer.assign(start)
        consumer.pause(start)

    def _on_gone(self, consumer: Any, partitions: list[Any]) -> None:  # noqa: ARG002 - librdkafka's call
        self._moved()
        self._assigned = frozenset()
        consumer.unassign()

    def _moved(self) -> None:
        self._epoch += 1
        self._live.clear()
        self._stopped.clear()
        self._paused.clear()

    def poll(self, timeout_s: float, max_records: int) -> Polled:
        """As `ports.GroupConsumer.poll`."""
        records = self._fetched(timeout_s, max_records)
        # Taken with the records: a later one may be another generation's. Rebalance callbacks run inside
        # consume() on this thread, so records, assignment and epoch belong together.
        metadata = self._consumer.consumer_group_metadata()
        generation = int.from_bytes(metadata[len(_MAGIC) : len(_MAGIC) + 4], "little", signed=True)
        if not metadata.startswith(_MAGIC):
            raise FatalError("this librdkafka writes group metadata in an unknown form; install another")
        if not self._assigned:
            generation = -1
        membership = Membership(generation, ConfluentMember(metadata, self._consumer, self.is_fenced))
        held = [part for part in records if part.partition in self._live]
        return Polled(membership, self._assigned, self._epoch, held)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        """As `ports.GroupConsumer.committed`."""
        if not partitions:
            return {}
        with _errors("committed offsets"):
            held = self._consumer.committed([TopicPartition(*part) for part in partitions], timeout=_LOOKUP_S)
        found: dict[Partition, Committed | None] = {}
        for part in held:
            if part.error is not None:
                error = KafkaException(part.error)
                raise translated(error, f"committed offset of {part.topic}[{part.partition}]") from error
            known = part.offset >= 0
            committed = Committed(part.offset, part.metadata or "") if known else None
            found[Partition(part.topic, part.partition)] = committed
        return found

    def seek(self, partition: Partition, offset: int) -> None:
        """As `ports.GroupConsumer.seek`."""
        if partition not in self._assigned:
            return
        self._seek(partition, offset)
        if partition not in self._paused:
            self._consumer.resume([TopicPartition(*partition)])

    def close(self) -> None:
        """As `ports.GroupConsumer.close`."""
        if not self._closing:
            self._closing = True
            super().close()

    def _owns(self, partition: Partition) -> bool:
        return partition in self._assigned

    def _restart(self, partition: Partition) -> None:
        # In a group with eager rebalances only the whole assignment can be given anew.
        targets = [TopicPartition(*part, self._live.get(part, 0)) for part in self._assigned]
        silent = [
            target for target, part in zip(targets, self._assigned, strict=True) if not self._reads(part)
        ]
        with _errors(f"seek {partition}"):
            self._consumer.assign(targets)
            self._consumer.pause(silent)

    def _reads(self, partition: Partition) -> bool:
        return partition in self._live and partition not in self._paused


@contextmanager
def _errors(doing: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise translated(error, doing) from error


@contextmanager
def _abortable() -> Iterator[None]:
    try:
        yield
    except BrokerError as error:
        raise AbortableError(str(error)) from error
