"""The base class of the group consumer and the reader on confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from itertools import groupby, islice
from typing import Any

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
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
    UnreadableError,
)
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.confluent.options import ERRORS, ClientEvents, reason
from twinsieve.pipeline.kafka.confluent.patches import headers_of
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
    """Options of every consumer: read-committed, never commits, never resets an offset."""
    return {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        # Off by default: messages damaged on a disk or in the network would be read without an error.
        "check.crcs": True,
        "allow.auto.create.topics": False,
        # When its local queue is full, librdkafka by default pauses fetching for a second. With that default
        # we read 150,000 messages/s, with this value 800,000.
        "fetch.queue.backoff.ms": 5,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 50,
        # `twinsieve lint` uses these numbers in its memory estimate.
        "max.partition.fetch.bytes": partition_bytes(settings),
        "fetch.max.bytes": response_bytes(settings),
        # This also limits the unpacked size of zstd batches, but not of gzip, lz4 and snappy (librdkafka
        # 2.16).
        "receive.message.max.bytes": max_received(settings),
        "queued.max.messages.kbytes": PREFETCH_BYTES >> 10,
    }


def answer_options() -> dict[str, Any]:
    """Options that bound the size of a fetch answer, for a consumer of topics that other programs write.

    librdkafka unpacks a whole answer at once, so a small limit bounds the memory.
    """
    return {
        "max.partition.fetch.bytes": ANSWER_BYTES,
        "fetch.max.bytes": ANSWER_BYTES,
        # Set too, because librdkafka raises a fetch.max.bytes that is smaller than message.max.bytes.
        "message.max.bytes": ANSWER_BYTES,
    }


class ConfluentConsumer(PartitionConsumer):
    """Base class of both consumers: groups messages into columns, and keeps positions and pauses."""

    def __init__(self, access: Access, own: Mapping[str, Any]) -> None:
        super().__init__(access.admin, ERRORS)
        self._clock = access.clock
        self._events = ClientEvents()
        self._live: dict[Partition, int] = {}
        self._last: dict[Partition, tuple[int, int]] = {}
        self._paused: set[Partition] = set()
        # Partitions that deliver nothing until the next `seek` on them, with the error that the next poll
        # raises; None once it was raised.
        self._stopped: dict[Partition, BrokerError | None] = {}
        self._later: BrokerError | None = None
        mine = self._events.options() | consumer_options(access.settings)
        self._options = {**access.options, **mine, **own}
        self._consumer = Consumer(self._options)

    def _fetched(self, timeout_s: float, max_records: int) -> list[Records]:
        self._raise_what_waits()
        deadline = time.monotonic() + timeout_s
        while True:
            # consume(n, t) waits up to t until it has n messages. Ask for one, so that the first message is
            # not delayed by waiting for more.
            messages = self._consume(1, max(0.0, deadline - time.monotonic()))
            if messages and max_records > 1:
                messages += self._more(max_records - 1, len(messages[0]))
            records = self._columns(messages)
            # Events such as "end of partition" give no record, so continue to wait after them.
            # librdkafka waits for whole milliseconds, so the rest of the last one would be a busy loop.
            if records or self._waits() or time.monotonic() >= deadline - 0.001:
                return records

    def _more(self, count: int, largest: int) -> list[Any]:
        """At most `count` messages that have already arrived, up to about POLL_BYTES in all.

        largest: bytes of the first message. Each call of the library takes as many messages as would fit if
            all were as large as the largest message so far.
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
            # The exception says only "fatal"; the error callback received the cause.
            self._notice_failure(KafkaException(self._events.fatal), "reading")
        return messages

    def _notice_failure(self, error: KafkaException, doing: str) -> None:
        """Keep this error for the next poll to raise; messages of the same call are delivered first."""
        # A later error replaces only a retryable one. An error that is not retryable stays, so that the role
        # cannot continue after it.
        if self._later is None or self._later.retryable:
            self._later = ERRORS.translated(error, doing)
            self._later.__cause__ = error

    def _stop(self, partition: Partition, stop_error: BrokerError, error: KafkaException) -> None:
        """Deliver nothing of the partition until its next `seek`; the next poll raises the error, unless the
        seek comes first."""
        stop_error.__cause__ = error
        self._stopped[partition] = stop_error

    def _columns(self, messages: list[Any]) -> list[Records]:
        by_partition: dict[Partition, Records] = {}
        # All calls here go over a whole column: a loop over the messages takes twice the time.
        places: Iterable[tuple[type, Any, Any]] = zip(
            map(type, map(Message.error, messages)),
            map(Message.topic, messages),
            map(Message.partition, messages),
            strict=True,
        )
        rest = iter(messages)
        for (kind, topic, number), same in groupby(places):
            run = list(islice(rest, len(list(same))))
            if kind is KafkaError:
                for event in run:
                    self._notice(event, event.error())
                continue
            partition = Partition(topic, number)
            if partition in self._live and partition not in self._stopped:
                records = by_partition.setdefault(partition, Records(partition))
                self._add(records, run, self._live[partition])
        filled = [records for records in by_partition.values() if len(records)]
        for records in filled:
            self._passed(records.partition, records.offsets[-1] + 1)
            self._last[records.partition] = records.offsets[-1] + 1, records.epochs[-1]
            self._clock.read(records)
        return filled

    def _add(self, records: Records, run: list[Any], wanted: int) -> None:
        """Add consecutive messages of one partition to its records; those below offset `wanted` are from
        before the last seek."""
        # Only an event has no offset, topic or partition; to the type stubs a message may have none.
        offsets: list[Any] = list(map(Message.offset, run))
        if min(offsets) < wanted:
            run = [message for message, offset in zip(run, offsets, strict=True) if offset >= wanted]
            offsets = [offset for offset in offsets if offset >= wanted]
            if not run:
                return
        stamps = list(map(Message.timestamp, run))
        # Only of the first message, because the timestamp type of a topic seldom changes.
        records.stamped_by_broker = stamps[0][0] == TIMESTAMP_LOG_APPEND_TIME
        epochs = list(map(Message.leader_epoch, run))
        records.offsets += offsets
        records.timestamps_ms += [stamp if kind and stamp >= 0 else NO_TIMESTAMP for kind, stamp in stamps]
        records.keys += map(Message.key, run)
        records.values += map(Message.value, run)
        records.headers += headers_of(run)
        records.epochs += [NO_EPOCH if epoch is None else epoch for epoch in epochs]

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
            # librdkafka's own position does not advance past control markers; the offset of this event does.
            self._passed(partition, message.offset())
            return
        refused = KafkaException(error)
        if code in _UNDECODABLE and partition is not None:
            self._stop_at_batch(partition, message.offset(), refused)
            return
        if code == KafkaError._AUTO_OFFSET_RESET and partition is not None:
            broker_error = ERRORS.translated(refused, f"reading {partition}")
            if _TRUNCATED in error.str():
                # The error code does not say that the log was truncated; only the text does.
                broker_error = TruncatedError(partition, f"reading {partition}: {reason(refused)}")
            self._stop(partition, broker_error, refused)
            return
        group = self._options["group.id"]
        self._notice_failure(
            refused, f"reading for group {group}" if partition is None else f"reading {partition}"
        )

    def _stop_at_batch(self, partition: Partition, first: int, refused: KafkaException) -> None:
        """Stop before a batch that cannot be decoded, unless the batch lies before the read position.

        librdkafka 2.16 continues inside the damaged batch and may return garbage, so nothing of the partition
        may be delivered until the next seek.

        first: the first offset of the batch, which may be before the read position
        """
        if partition not in self._live:
            return
        after, offset = None, max(first, self._live[partition])
        with suppress(BrokerError):
            after = self._admin().batch_end(partition, first)
        if after is not None and after <= offset:
            return  # the event is from before the last seek
        self._stop(partition, UnreadableError(partition, offset, reason(refused), after), refused)

    def _seek(self, partition: Partition, offset: int, epoch: int) -> None:
        self._last[partition] = offset, epoch
        if partition in self._stopped:
            # After an offset out of range librdkafka stops reading the partition and refuses to seek in it,
            # so assign the partition again. The same may happen after a batch that it could not decode.
            del self._stopped[partition]
            self._live[partition] = offset
            self._restart(partition)
            if epoch == NO_EPOCH:
                return
        deadline = time.monotonic() + _SEEK_S
        target = TopicPartition(*partition, offset, leader_epoch=epoch)
        # For a moment after its assignment a partition is not yet "actively consumed", and seek() fails.
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
        # Seek to the offset after the last message, with the leader epoch of that message. `_live` would be
        # wrong: it may be the end of the partition, which may belong to a later leader epoch. An offset
        # beyond the end of its epoch looks like a truncated log.
        places = [(p, *self._last.get(p, (self._live[p], NO_EPOCH))) for p in ours if p in self._live]
        targets = [TopicPartition(*p, offset, leader_epoch=epoch) for p, offset, epoch in places]
        self._consumer.resume(targets)
        # librdkafka fetches from a resumed partition only after its next timer, up to a second later. A seek
        # makes it fetch at once. If a seek fails, librdkafka is about to check that partition anyway, so the
        # error is ignored.
        for target in targets:
            with suppress(KafkaException):
                self._consumer.seek(target)

    def _owns(self, partition: Partition) -> bool:
        raise NotImplementedError

    def _restart(self, partition: Partition) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        self._consumer.close()
