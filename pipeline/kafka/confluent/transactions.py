"""The transactional producer on confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.broker.records import AbortableError, Committed, Messages, Partition
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.confluent.options import ERRORS, ClientEvents, cause, code_of
from twinsieve.pipeline.kafka.confluent.patches import error_of_open_transaction, outside_metadata
from twinsieve.pipeline.kafka.confluent.producers import CLOSE_S, note_time, producer_options, put_all, shut
from twinsieve.pipeline.kafka.transactions import KafkaTransactionalProducer

_GRACE_S = 2.0
_CONNECT_S = 1.0
_SLICE_S = 0.05
_BUSY = Pauses(first_s=0.02, longest_s=0.5)
"""Pauses between two requests for a transactional id, while the broker still ends the transaction that the
last holder of the id left open."""
_LATER = (KafkaError.CONCURRENT_TRANSACTIONS, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)


class ConfluentTransactionalProducer(KafkaTransactionalProducer):
    """`ports.TransactionalProducer` on confluent-kafka.

    Every call has librdkafka's own time limit. Where librdkafka may exceed it, the call also runs in a helper
    thread with a time limit of its own.
    """

    _raised = (KafkaException, BufferError)

    def __init__(self, access: Access, transactional_id: str, topics: Collection[str] = ()) -> None:
        super().__init__(access, transactional_id, ERRORS, topics)
        settings = access.settings
        self._failure: KafkaError | None = None
        self._sent_to: set[str] = set()
        # Unknown topics may have LogAppendTime; the first report then brings the broker's time.
        tells_time = not topics or any(access.limits.of(topic).stamps for topic in topics)
        self._options = {
            **access.options,
            **ClientEvents().options(),
            **producer_options(settings),
            "transactional.id": transactional_id,
            "transaction.timeout.ms": settings.transaction_timeout_ms,
            # librdkafka requires that a message does not time out later than its transaction.
            "delivery.timeout.ms": settings.transaction_timeout_ms,
            "socket.timeout.ms": min(access.options["socket.timeout.ms"], settings.transaction_timeout_ms),
            # With a longer linger messages would be sent only after the transaction's offsets, not in
            # parallel with them.
            "linger.ms": 1,
            # Otherwise librdkafka would call Python for each message that was delivered.
            "delivery.report.only.error": not tells_time,
        }
        self._make()

    def _make(self) -> None:
        try:
            self._producer = self._started({**self._options, "batch.size": self._batches.now})
        except KafkaException as error:
            if code_of(error) == KafkaError.INVALID_TRANSACTION_TIMEOUT:
                raise self._timeout_too_long() from error
            raise ERRORS.translated(error, f"{self._name}: start") from error

    def _started(self, options: dict[str, Any]) -> Any:
        """A producer that holds the transactional id.

        The first request for the id makes the broker abort the transaction that the last holder left open,
        and the broker answers "retry later". The broker needs milliseconds, but librdkafka retries after
        500 ms. So the loop replaces a refused producer by a new one, which sends its request at once. A
        producer whose request is not answered yet is never replaced: its late request would fence the next
        producer.
        """
        deadline = time.monotonic() + self._deadline_s
        pause_s = 0.0
        while True:
            producer = Producer(options)
            # Connect before init_transactions: if that call finds no connection, it looks for the coordinator
            # again only after 500 ms. One call of list_topics is not enough: its answer comes over the
            # bootstrap connection, which is then closed. The second call opens a connection that stays.
            with suppress(KafkaException):
                for _ in range(2):
                    producer.list_topics(topic="__consumer_offsets", timeout=_CONNECT_S)
            refusal = self._initialized(producer, deadline)
            if refusal is None:
                return producer
            if refusal.args[0].code() not in _LATER or time.monotonic() >= deadline:
                # Drop all references to the producer, so that `shut` ends it; the traceback holds one too.
                kept = [producer]
                del producer
                shut(kept, 0.0)
                raise refusal.with_traceback(None)
            pause_s = _BUSY.after(pause_s)
            time.sleep(pause_s)

    def _initialized(self, producer: Any, deadline: float) -> KafkaException | None:
        """Request the transactional id; returns None if the broker grants it, else the broker's error.

        The request is repeated with short time limits, because librdkafka reports an error only when the time
        limit is over.
        """
        while True:
            try:
                producer.init_transactions(min(_SLICE_S, max(0.0, deadline - time.monotonic())))
                return None
            except KafkaException as error:
                reason = error.args[0]
                if reason.code() in _LATER or not reason.retriable() or time.monotonic() >= deadline:
                    return error

    def _end(self) -> None:
        if self._producer is not None:
            kept, self._producer = [self._producer], None
            shut(kept, 0.0)

    def begin(self) -> None:
        super().begin()
        self._failure = None
        self._sent_to.clear()

    def _send(self, topic: str, partition: int | None, messages: Messages) -> None:
        self._sent_to.add(topic)
        now_ms, sent_s = self._clock.now_ms(), time.monotonic()
        on_first = partial(self._on_first_delivery, sent_s)
        put_all(self._producer, topic, partition, messages, self._on_delivery, now_ms, on_first)
        self._producer.poll(0)

    def _on_delivery(self, error: KafkaError | None, _: object) -> None:
        # Of a batch with a refused message, the reports of the others say only that it was not their fault.
        if self._failure is None or self._failure.code() == KafkaError._INVALID_DIFFERENT_RECORD:
            self._failure = error or self._failure

    def _on_first_delivery(self, sent_s: float, error: KafkaError | None, message: Any) -> None:
        self._on_delivery(error, message)
        if error is None:
            note_time(self._clock, message, sent_s)

    def _send_offsets(self, offsets: Mapping[Partition, Committed], metadata: Any) -> None:
        targets = [TopicPartition(*partition, *committed) for partition, committed in offsets.items()]
        send = partial(self._producer.send_offsets_to_transaction, targets, metadata, self._life_s)
        # librdkafka exceeds its own limit while it looks for a coordinator that has left the cluster
        # (librdkafka issue 5456).
        self._call("offsets", send, self._life_s + _GRACE_S)

    def _outside(self, group: str) -> bytes:
        return outside_metadata(group)

    def _commit(self) -> None:
        deadline = time.monotonic() + self._deadline_s
        while True:
            left = max(0.1, deadline - time.monotonic())
            try:
                self._call("commit", partial(self._producer.commit_transaction, left))
                return
            except AbortableError as error:
                # A commit that timed out continues in the background. Call it again to learn the outcome,
                # which is unknown until then.
                inner = error.__cause__
                kind = cause(inner) if isinstance(inner, KafkaException) else None
                if kind is None or not kind.retriable() or kind.txn_requires_abort():
                    raise
                if time.monotonic() >= deadline:
                    raise self._finished("commit", f"no answer within {self._deadline_s:g} s") from inner

    def _abort(self, seconds: float) -> None:
        self._producer.abort_transaction(seconds)

    def close(self) -> None:
        self.closed = True
        # If this abort fails (broker away, or producer fenced), the next holder of the slot aborts instead.
        with suppress(KafkaException):
            if self._open and not self._dead:
                self._producer.abort_transaction(CLOSE_S)
        self._open = False
        self._thread.close()
        self._end()

    def _where(self, doing: str, error: Exception) -> str:
        if code_of(error) != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return doing
        # librdkafka does not name the refused topic; it may be the topic of an earlier call. So name all.
        return f"{doing.partition(' to ')[0]} to {', '.join(sorted(self._sent_to))}"

    def _first(self, error: Exception) -> Exception:
        """The error that made the transaction fail, if librdkafka reported only the failure; else `error`.

        librdkafka adds partitions to the transaction in the background. If the broker refuses one, calls in
        progress (produce, offsets) fail with just "erroneous state". Only a call that begins later gets the
        cause. So this function tries to begin a second transaction, which changes nothing in the open one. If
        messages fail but the transaction does not, the commit reports only the number of failed messages;
        their delivery reports say why they failed.
        """
        if self._open and code_of(error) == KafkaError._STATE:
            first = error_of_open_transaction(self._producer)
            if first is not None and code_of(first) not in (None, KafkaError._STATE):
                return first
        if self._open and code_of(error) == KafkaError._INCONSISTENT and self._failure is not None:
            return KafkaException(self._failure)
        return error
