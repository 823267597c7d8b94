"""The idempotent producer, and functions that the transactional producer uses too."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable
from typing import Any

from kafka import KafkaProducer, TopicPartition, errors

from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.records import AbortableError, Copies, Messages, Partition
from twinsieve.pipeline.kafka.access import Access
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.errors import reason, too_large, translated
from twinsieve.pipeline.kafka.options import connected
from twinsieve.pipeline.kafka.patches import (
    append_batches,
    append_time,
    cut_off,
    never_split,
    require_partition,
)
from twinsieve.pipeline.kafka.size_limits import BatchBytes
from twinsieve.pipeline.settings.client_buffers import QUEUE_BYTES
from twinsieve.stages.rows.record_copies import EncodedBatch, copy_records

MAX_BLOCK_MS = 5_000
_CLOSE_S = 2.0


def make_producer(access: Access, batch_bytes: int, **more: Any) -> KafkaProducer:
    """A producer with acks=all; sending a message fails after `request_timeout`.

    batch_bytes: greatest size of a batch; more: further options of kafka-python

    raises: BrokerError when no broker can be reached
    """
    settings, options = access.settings, access.options
    producer = connected(
        settings,
        KafkaProducer,
        **options,
        **more,
        acks="all",
        enable_idempotence=True,
        batch_size=batch_bytes,
        max_request_size=settings.message_bytes,
        max_block_ms=MAX_BLOCK_MS,
        delivery_timeout_ms=max(settings.request_timeout_ms, options["request_timeout_ms"] + 1_000),
        retry_backoff_ms=20,
        compression_type=None if settings.compression == "none" else settings.compression,
        allow_auto_create_topics=False,
        metrics_enabled=False,
    )
    never_split(producer)
    return producer


def shut(producer: KafkaProducer) -> None:
    """Close a producer; wait briefly for messages on their way, then drop them."""
    try:
        producer.close(timeout=_CLOSE_S)
    except errors.KafkaError:
        cut_off(producer)


def encoded(parts: Iterable[Messages | Copies], clock: BrokerClock, batch_bytes: int) -> list[EncodedBatch]:
    """Record batches of at most `batch_bytes` with these messages, in order; a message without a time gets
    the broker's, as far as it is known."""
    now_ms = clock.now_ms()
    if now_ms is None:
        now_ms = int(time.time() * 1000)
    return copy_records([part.copied(now_ms) for part in parts], batch_bytes)


def note_time(clock: BrokerClock, future: Any, sent_s: float) -> None:
    """Pass the broker's time in an acknowledgement to the clock, if the topic has LogAppendTime.

    future: the acknowledged message's future, from `send`
    sent_s: monotonic time at which the message was sent
    """
    stamp = append_time(future)
    if stamp is not None:
        clock.acknowledged(stamp, sent_s)


class KafkaIdempotentProducer(Client):
    """`ports.IdempotentProducer` on kafka-python.

    After a failed batch kafka-python continues with the next one, which would leave a gap. So the callback of
    the first failure, which runs on the sending thread, ends the producer at once. After the failure was
    reported to the caller, the next append makes a new producer.
    """

    def __init__(self, access: Access, topics: Collection[str] = ()) -> None:
        self._access = access
        self._batches = BatchBytes(access.limits, topics)
        self._changed = threading.Condition()
        self._round = 0
        self._waiting = 0
        self._waiting_bytes = 0
        self._failure: Exception | None = None
        self._producer: KafkaProducer | None = make_producer(access, self._batches.now)

    def append(self, partition: Partition, messages: Messages) -> None:
        self._access.limits.check(partition, messages)
        batches = encoded([messages], self._access.clock, self._batches.now)
        size = sum(len(batch.records) for batch in batches)

        # kafka-python 3 does not limit its queue. Without this limit the queue would fill the memory while
        # the broker is away.
        def full() -> bool:
            return self._waiting > 0 and self._waiting_bytes + size > QUEUE_BYTES

        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or not full(), MAX_BLOCK_MS / 1000)
            if self._failure is None and full():
                self._failure = TimeoutError(f"{self._waiting_bytes} bytes wait and none was acknowledged")
            if self._failure is not None:
                self._give_up(f"append to {partition}")
            self._waiting += len(messages)
            self._waiting_bytes += size
        turn, clock, sent_s = self._round, self._access.clock, time.monotonic()
        try:
            if self._producer is None:
                self._producer = make_producer(self._access, self._batches.now)
            target = TopicPartition(*partition)
            require_partition(self._producer, target)
            futures = append_batches(self._producer, [(target, batch) for batch in batches])
        except (errors.KafkaError, ValueError) as error:
            # ValueError: the partition does not exist. A producer that was cut off after a failure reports
            # only that it is closed, so keep the first failure.
            with self._changed:
                self._failure = self._failure or error
            self._give_up(f"append to {partition}")
        for batch, future in zip(batches, futures, strict=True):
            future.add_callback(lambda _, future=future: note_time(clock, future, sent_s))
            future.add_callback(lambda _, batch=batch: self._done(turn, batch, None))
            future.add_errback(lambda error, batch=batch: self._done(turn, batch, error))

    def _done(self, turn: int, batch: EncodedBatch, error: Exception | None) -> None:
        with self._changed:
            if turn != self._round:
                return
            self._waiting -= batch.rows
            self._waiting_bytes -= len(batch.records)
            if error is not None and self._failure is None:
                self._failure = error
                if self._producer is not None:
                    cut_off(self._producer)
            self._changed.notify_all()

    def _give_up(self, doing: str) -> None:
        with self._changed:
            failure, producer = self._failure, self._producer
            self._failure, self._producer = None, None
            self._round += 1
            self._waiting = self._waiting_bytes = 0
        if producer is not None:
            cut_off(producer)
        if failure is not None and too_large(failure):
            self._batches.refused()
        if isinstance(failure, errors.AuthorizationError):
            raise translated(failure, doing) from failure
        why = reason(failure) if failure is not None else "failed"
        raise AbortableError(f"{doing}: {why}; reading again from the committed offsets") from failure

    def confirm(self, timeout_s: float) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or self._waiting == 0, timeout_s)
            if self._failure is not None:
                self._give_up("append")
            return self._waiting

    def close(self) -> None:
        self.closed = True
        if self._producer is not None:
            shut(self._producer)
            self._producer = None
