"""What both kinds of confluent-kafka consumer share."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from twinsieve.pipeline.broker.records import (
    NO_EPOCH,
    NO_TIMESTAMP,
    AbortableError,
    BrokerError,
    FatalError,
    Partition,
    Records,
    TruncatedError,
)
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.confluent.options import ERRORS, ClientEvents, reason
from twinsieve.pipeline.kafka.confluent.patches import headers_of
from twinsieve.pipeline.kafka.deadline import METADATA_S
from twinsieve.pipeline.kafka.errors import undecodable
from twinsieve.pipeline.kafka.reading import PartitionConsumer
from twinsieve.pipeline.settings.client_buffers import (
    ANSWER_BYTES,
    POLL_BYTES,
    PREFETCH_BYTES,
    SLICE_MESSAGES,
    max_received,
    partition_bytes,
    response_bytes,
)
from twinsieve.pipeline.settings.model import KafkaSettings

_SEEK_S = 5.0
_PASSING = (KafkaError._STATE, KafkaError._UNKNOWN_PARTITION, KafkaError._TIMED_OUT)
_UNDECODABLE = (KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION, KafkaError._NOT_IMPLEMENTED)
_NO_NEWS = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT)

_TRUNCATED = KafkaError(KafkaError._LOG_TRUNCATION).str()


def consumer_options(settings: KafkaSettings) -> dict[str, Any]:
    """Options that every consumer shares: read-committed, never commits, never resets an offset."""
    return {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        # Off by default: what a disk or a wire has altered would be read as if it had been written so.
        "check.crcs": True,
        "allow.auto.create.topics": False,
        # By default a full local queue is looked at again only after a second: 150,000 instead of
        # 800,000 messages/s.
        "fetch.queue.backoff.ms": 5,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 50,
        # `twinsieve lint` counts with these.
        "max.partition.fetch.bytes": partition_bytes(settings),
        "fetch.max.bytes": response_bytes(settings),
        # What zstd unpacks to is held to this too, gzip, lz4 and snappy are not (librdkafka 2.16).
        "receive.message.max.bytes": max_received(settings),
        "queued.max.messages.kbytes": PREFETCH_BYTES >> 10,
        "topic.metadata.refresh.interval.ms": int(METADATA_S * 1000),
    }


def answer_options() -> dict[str, Any]:
    """Options of a consumer that reads what strangers wrote: librdkafka unpacks a whole answer at once."""
    return {
        "max.partition.fetch.bytes": ANSWER_BYTES,
        "fetch.max.bytes": ANSWER_BYTES,
        # What fetch.max.bytes is raised to.
        "message.max.bytes": ANSWER_BYTES,
    }


class ConfluentConsumer(PartitionConsumer):
    """What both kinds of consumer share: grouping messages into columns, positions, pauses."""

    def __init__(self, access: Access, own: Mapping[str, Any]) -> None:
        super().__init__(access.admin, ERRORS)
        self._clock = access.clock
        self._events = ClientEvents()
        self._live: dict[Partition, int] = {}
        self._last: dict[Partition, tuple[int, int]] = {}
        self._paused: set[Partition] = set()
        # Partitions that are silent until they are sought, with the error that the next poll raises, if any.
        self._stopped: dict[Partition, BrokerError | None] = {}
        self._later: BrokerError | None = None
        mine = self._events.options() | consumer_options(access.settings)
        self._options = {**access.options, **mine, **own}
        self._consumer = Consumer(self._options)

    def _fetched(self, timeout_s: float, max_records: int) -> list[Records]:
        self._raise_what_waits()
        deadline = time.monotonic() + timeout_s
        while True:
            # consume(n, t) waits the whole of t for n messages; the first one must not wait for others.
            messages = self._consume(1, max(0.0, deadline - time.monotonic()))
            if messages and max_records > 1:
                messages += self._more(max_records - 1, len(messages[0]))
            records = self._columns(messages)
            # An end of partition is no record, so it does not end the wait either.
            if records or self._waits() or time.monotonic() >= deadline:
                return records

    def _more(self, count: int, largest: int) -> list[Any]:
        """At most `count` messages that are there, a few at a time until they have POLL_BYTES.

        largest: bytes of the first message; as many are taken at once as there is room for of that size
        """
        messages: list[Any] = []
        room = POLL_BYTES - largest
        while count > 0 and room > 0:
            limit = min(count, SLICE_MESSAGES, max(1, room // max(1, largest)))
            batch = self._consume(limit, 0)
            sizes = list(map(len, batch))
            messages += batch
            room -= sum(sizes)
            largest = max(largest, *sizes) if sizes else largest
            count = count - limit if len(batch) == limit else 0
        return messages

    def _waits(self) -> bool:
        return self._later is not None or any(error is not None for error in self._stopped.values())

    def _raise_what_waits(self) -> None:
        if self._later is not None:
            error = self._later
            if not isinstance(error, FatalError):
                self._later = None
            raise error
        for partition, stop_error in self._stopped.items():
            if stop_error is not None:
                self._stopped[partition] = None
                raise stop_error

    def _consume(self, count: int, timeout_s: float) -> list[Any]:
        messages: list[Any] = []
        try:
            messages = self._consumer.consume(count, timeout_s)
        except KafkaException as error:
            self._notice_failure(error, "reading")
        if self._events.fatal is not None:
            # The exception says only "fatal"; what it was came to the error callback.
            self._notice_failure(KafkaException(self._events.fatal), "reading")
        return messages

    def _notice_failure(self, error: KafkaException, doing: str) -> None:
        """The next poll's error; messages that came in the same call are delivered first."""
        # The worst one counts: nothing that comes after it may have the role go on.
        if self._later is None or self._later.retryable:
            self._later = ERRORS.translated(error, doing)
            self._later.__cause__ = error

    def _stop(self, partition: Partition, stop_error: BrokerError, error: KafkaException) -> None:
        """The next poll's error, unless the partition is sought before."""
        stop_error.__cause__ = error
        self._stopped[partition] = stop_error

    def _columns(self, messages: list[Any]) -> list[Records]:
        by_partition: dict[Partition, Records] = {}
        last: tuple[str, int] | None = None
        wanted = 0
        records: Records | None = None
        for message in messages:
            error = message.error()
            if error is not None:
                self._notice(message, error)
                # It may have silenced the partition of the messages behind it.
                last = None
                continue
            here = message.topic(), message.partition()
            if here != last:
                last, partition = here, Partition(*here)
                wanted, records = self._live.get(partition, 0), None
                if partition in self._live and partition not in self._stopped:
                    records = by_partition.setdefault(partition, Records(partition))
                    # One look at each run of messages: a topic is seldom changed in the midst of one.
                    records.stamped_by_broker = message.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME
            offset = message.offset()
            if records is None or offset < wanted:
                continue
            kind, stamp = message.timestamp()
            records.offsets.append(offset)
            records.timestamps_ms.append(stamp if kind and stamp >= 0 else NO_TIMESTAMP)
            records.keys.append(message.key())
            records.values.append(message.value())
            records.headers.append(headers_of(message))
            epoch = message.leader_epoch()
            records.epochs.append(NO_EPOCH if epoch is None else epoch)
        filled = [records for records in by_partition.values() if len(records)]
        for records in filled:
            self._passed(records.partition, records.offsets[-1] + 1)
            self._last[records.partition] = records.offsets[-1] + 1, records.epochs[-1]
            self._clock.read(records)
        return filled

    def _passed(self, partition: Partition, offset: int) -> None:
        if offset > self._live.get(partition, offset):
            self._live[partition] = offset

    def _notice(self, message: Any, error: KafkaError) -> None:
        code, partition = error.code(), None
        if message.topic():
            partition = Partition(message.topic(), message.partition())
        if code in _NO_NEWS or partition in self._stopped:
            return
        if code == KafkaError._PARTITION_EOF and partition is not None:
            # librdkafka's own position stays behind the last message; this offset is past control markers.
            self._passed(partition, message.offset())
            return
        refused = KafkaException(error)
        if code in _UNDECODABLE and partition is not None:
            offset = message.offset()
            if offset >= self._live.get(partition, 0):  # else it was sought away from
                # librdkafka 2.16 continues inside the damaged batch and may return garbage: the partition is
                # silent until it is sought again.
                self._stop(partition, undecodable(partition, offset, reason(refused)), refused)
            return
        if code == KafkaError._AUTO_OFFSET_RESET and partition is not None:
            broker_error = ERRORS.translated(refused, f"reading {partition}")
            if _TRUNCATED in error.str():
                # What befell the offset is told in the text alone.
                broker_error = TruncatedError(partition, f"reading {partition}: {reason(refused)}")
            self._stop(partition, broker_error, refused)
            return
        group = self._options["group.id"]
        self._notice_failure(
            refused, f"reading for group {group}" if partition is None else f"reading {partition}"
        )

    def _seek(self, partition: Partition, offset: int, epoch: int) -> None:
        self._last[partition] = offset, epoch
        if partition in self._stopped:
            # After an offset out of range librdkafka gives a partition up and refuses to seek in it; behind a
            # batch that it could not decode it may do the same.
            del self._stopped[partition]
            self._live[partition] = offset
            self._restart(partition)
            if epoch == NO_EPOCH:
                return
        deadline = time.monotonic() + _SEEK_S
        target = TopicPartition(*partition, offset, leader_epoch=epoch)
        # A partition that was assigned a moment ago is not yet "actively consumed" and refuses.
        while True:
            try:
                self._consumer.seek(target)
                break
            except KafkaException as error:
                if error.args[0].code() not in _PASSING or time.monotonic() >= deadline:
                    raise ERRORS.translated(error, f"seek {partition}") from error
                time.sleep(0.01)
        self._live[partition] = offset

    def position(self, partition: Partition) -> int:
        if partition not in self._live:
            raise AbortableError(f"position of {partition}: nothing was sought there")
        return self._live[partition]

    def pause(self, partitions: Collection[Partition]) -> None:
        ours = [partition for partition in partitions if self._owns(partition)]
        self._paused.update(ours)
        self._consumer.pause([TopicPartition(*p) for p in ours if p in self._live])

    def resume(self, partitions: Collection[Partition]) -> None:
        ours = [partition for partition in partitions if partition in self._paused]
        self._paused.difference_update(ours)
        # Behind the last message: the end that librdkafka told may lie in a later epoch than that message.
        places = [(p, *self._last.get(p, (self._live[p], NO_EPOCH))) for p in ours if p in self._live]
        targets = [TopicPartition(*p, offset, leader_epoch=epoch) for p, offset, epoch in places]
        self._consumer.resume(targets)
        # librdkafka sees a resumed partition only when it next looks for work, up to a second later; a seek
        # makes it look. One that refuses is about to be looked at anyway.
        for target in targets:
            with suppress(KafkaException):
                self._consumer.seek(target)

    def _owns(self, partition: Partition) -> bool:
        raise NotImplementedError

    def _restart(self, partition: Partition) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        self._consumer.close()
