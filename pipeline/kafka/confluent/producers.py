"""The idempotent producer on confluent-kafka, and functions that the transactional producer uses too."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any, NoReturn

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Producer

from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.records import AbortableError, FatalError, Messages, Partition
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.confluent.options import ERRORS, ClientEvents, cause, code_of, reason
from twinsieve.pipeline.kafka.confluent.patches import positional_produce, purge
from twinsieve.pipeline.kafka.deadline import UNKNOWN_S, DeadlineError, within
from twinsieve.pipeline.kafka.errors import GRANT
from twinsieve.pipeline.kafka.size_limits import BATCH_BYTES, BatchBytes
from twinsieve.pipeline.settings.client_buffers import queue_bytes
from twinsieve.pipeline.settings.model import KafkaSettings

_BY_KEY = -1
"""The partition of a message whose key chooses it."""
_NOW = 0
"""The timestamp of a message that gets the time of this machine."""
_BLOCK_S = 5.0
_ASK_AGAIN_S = 0.02
CLOSE_S = 2.0
_REPORT_S = 0.5
_NOT_SENT = (KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
"""Errors of the messages queued after a failed message: they were not sent because of that failure."""
_DENIED = "Topic authorization failed"
_TOO_LARGE = "Message size too large"
"""After a fatal error of a producer with the gapless guarantee, only the error text contains the cause:
this one or the one above."""


def producer_options(settings: KafkaSettings, batch_bytes: int = BATCH_BYTES) -> dict[str, Any]:
    """Options of every producer: acks=all, idempotent, and the partitioner of Kafka's own clients."""
    return {
        "acks": "all",
        "enable.idempotence": True,
        "batch.size": batch_bytes,
        "message.max.bytes": settings.message_bytes,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": queue_bytes(settings) >> 10,
        "delivery.timeout.ms": settings.request_timeout_ms,
        "compression.type": settings.compression,
        # The default of Kafka's own clients. With librdkafka's default, which uses CRC32, the same key would
        # get another partition.
        "partitioner": "murmur2_random",
        "allow.auto.create.topics": False,
        # While the broker writes the markers of the previous transaction, the coordinator answers "retry
        # later". The default wait of 100 ms before each retry is longer than a whole transaction.
        "retry.backoff.ms": 5,
        # The wait doubles with each retry. The default maximum of a second would delay the first request to
        # a partition leader that has come back.
        "retry.backoff.max.ms": 100,
    }


def put_all(
    producer: Producer,
    topic: str,
    partition: int | None,
    messages: Messages,
    on_delivery: Any,
    now_ms: int | None,
    on_first_delivery: Any = None,
) -> None:
    """Queue messages for sending. If the queue stays full for `_BLOCK_S`, raise BufferError. If the client
    does not know the partition, ask a broker for it.

    on_delivery: librdkafka calls it for each message that was delivered, or that failed
    on_first_delivery: it calls this one instead for the first message; None: no difference
    now_ms: timestamp for a message that has none; None: the library uses the clock of this machine
    """
    number = _BY_KEY if partition is None else partition
    columns = messages.keys, messages.values, messages.headers, messages.timestamps_ms
    callback = on_first_delivery or on_delivery
    # confluent-kafka reads timestamp 0 as "now", so 0 is sent as 1 ms, an error of one millisecond.
    now = _NOW if now_ms is None else max(1, now_ms)
    produce = positional_produce(producer)
    for key, value, headers, stamp in zip(*columns, strict=True):
        own = (headers if type(headers) is list else list(headers)) if headers else None
        timestamp = now if stamp < 0 else stamp or 1
        deadline_s: float | None = None
        while True:
            try:
                produce(topic, value, key, number, callback, None, timestamp, own)
                break
            except BufferError:
                deadline_s = deadline_s or time.monotonic() + _BLOCK_S
                if time.monotonic() >= deadline_s:
                    raise
                producer.poll(0.05)
            except KafkaException as error:
                if code_of(error) != KafkaError._UNKNOWN_PARTITION:
                    raise
                deadline_s = deadline_s or time.monotonic() + UNKNOWN_S
                if time.monotonic() >= deadline_s:
                    raise
                # The answer updates what the client knows of the topic.
                with suppress(KafkaException):
                    producer.list_topics(topic, timeout=UNKNOWN_S)
                time.sleep(_ASK_AGAIN_S)
        callback = on_delivery


def note_time(clock: BrokerClock, message: Any, sent_s: float) -> None:
    """Pass the broker's time in an acknowledgement to the clock, if the topic has LogAppendTime.

    sent_s: monotonic time at which the message was sent
    """
    kind, stamp = message.timestamp()
    if kind == TIMESTAMP_LOG_APPEND_TIME:
        clock.acknowledged(stamp, sent_s)


def shut(kept: list[Producer], wait_s: float = CLOSE_S) -> None:
    """End the only producer in the list `kept`, with its threads and connections, and clear the list.

    wait_s: how long to wait for messages on their way; those not acknowledged by then are dropped

    librdkafka ends a producer when the last reference to it is dropped, in the thread that drops it, and may
    need any time for that. So the caller must keep no other reference: here a helper thread drops the one in
    the list. Producer.close() of newer releases waits for its transaction and messages without limit.
    """
    try:
        waiting = kept[0].flush(wait_s)
    except KafkaException:
        waiting = 1  # after a fatal error every call of the producer raises that error again
    if waiting:
        purge(kept[0])
        # Runs the callbacks of the dropped messages; without this call they are never freed.
        kept[0].poll(0)
    with suppress(DeadlineError):
        within(CLOSE_S, kept.clear)


class ConfluentIdempotentProducer(Client):
    """`ports.IdempotentProducer` on confluent-kafka."""

    def __init__(self, access: Access, topics: Collection[str] = ()) -> None:
        self._access = access
        self._events = ClientEvents()
        self._limits, self._clock = access.limits, access.clock
        self._batches = BatchBytes(access.limits, topics)
        self._failure: KafkaError | None = None
        self._failed_at = ""
        self._waiting = 0
        self._round = 0
        self._producer: Producer | None = self._new_producer()

    def _new_producer(self) -> Producer:
        return Producer(
            {
                **self._access.options,
                **self._events.options(),
                **producer_options(self._access.settings, self._batches.now),
                # Otherwise, after a message that timed out, the messages behind it would still be written.
                "enable.gapless.guarantee": True,
                "linger.ms": 0,
            }
        )

    def append(self, partition: Partition, messages: Messages) -> None:
        self._limits.check(partition, messages)
        turn, now_ms, sent_s = self._round, self._clock.now_ms(), time.monotonic()

        def on_delivery(error: KafkaError | None, message: Any) -> None:
            if turn == self._round:
                self._waiting -= 1
                if error is None:
                    note_time(self._clock, message, sent_s)
                elif self._failure is None or self._failure.code() in _NOT_SENT:
                    # The messages that were not sent because of a failed message may be reported before it.
                    # So an error that is reported later replaces theirs.
                    self._failure, self._failed_at = error, f" to {message.topic()}[{message.partition()}]"

        producer = self._producer = self._producer or self._new_producer()
        try:
            self._waiting += len(messages)
            put_all(producer, partition.topic, partition.number, messages, on_delivery, now_ms)
        except (KafkaException, BufferError) as error:
            # A failed producer raises the same error for every message. Its delivery reports hold the cause.
            self._serve(producer, 0)
            first = error if self._failure is None else KafkaException(self._failure)
            self._give_up(f"append to {partition}", first)
        self._serve(producer, 0)
        if self._failure is not None:
            self._give_up(f"append to {partition}", KafkaException(self._failure))

    def confirm(self, timeout_s: float) -> int:
        if self._producer is not None and self._waiting:
            deadline = time.monotonic() + timeout_s
            self._serve(self._producer, 0)
            while self._waiting and self._failure is None and time.monotonic() < deadline:
                self._serve(self._producer, max(0.0, deadline - time.monotonic()))
        if self._failure is not None:
            self._give_up(f"append{self._failed_at}", KafkaException(self._failure))
        return self._waiting

    def _serve(self, producer: Producer, timeout_s: float) -> None:
        try:
            producer.poll(timeout_s)
        except KafkaException as error:
            # The error is fatal, because the producer guarantees no gaps. The delivery report of the failed
            # message holds the cause; it has arrived, or arrives with the next poll.
            with suppress(KafkaException):
                producer.poll(0)
            self._failure = self._failure or cause(error)

    def _give_up(self, doing: str, error: Exception) -> NoReturn:
        if self._was_too_large(error):
            self._batches.refused()
        self._round += 1
        self._waiting = 0
        self._failure, self._failed_at = None, ""
        if self._producer is not None:
            # The old producer must not send its queued messages later.
            purge(self._producer)
            self._producer = None
        self._events.fatal = None
        broker_error = ERRORS.translated(error, doing)
        if isinstance(broker_error, FatalError) and (broker_error.denied or _DENIED in str(broker_error)):
            raise FatalError(f"{doing}: {reason(error)}; {GRANT}", denied=True) from error
        raise AbortableError(f"{doing}: {reason(error)}; reading again from the committed offsets") from error

    def _was_too_large(self, error: Exception) -> bool:
        """Whether a topic refused a batch for its size, as `error` or as the earlier cause of `error`."""
        failures = [cause(error)]
        deadline = time.monotonic() + _REPORT_S
        while self._producer and code_of(error) in _NOT_SENT and time.monotonic() < deadline:
            self._failure = None
            self._serve(self._producer, 0.05)
            failures += [self._failure, self._events.fatal]
            if any(failure is not None and failure.code() not in _NOT_SENT for failure in failures):
                break
        return any(
            failure is not None and (ERRORS.too_large(KafkaException(failure)) or _TOO_LARGE in failure.str())
            for failure in failures
        )

    def close(self) -> None:
        self.closed = True
        if self._producer is not None:
            kept, self._producer = [self._producer], None
            shut(kept)
