"""The transactional producer on kafka-python, with workarounds for faults of version 3.0.12."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from kafka import TopicPartition, errors

from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    Messages,
    Partition,
)
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.deadline import DeadlineError
from twinsieve.pipeline.kafka.kafka_python.options import ERRORS, reason
from twinsieve.pipeline.kafka.kafka_python.patches import cut_off, first_error
from twinsieve.pipeline.kafka.kafka_python.producers import MAX_BLOCK_MS, make_producer, note_time, shut
from twinsieve.pipeline.kafka.kafka_python.reading import offset_and_metadata
from twinsieve.pipeline.kafka.transactions import KafkaTransactionalProducer

_LINGER_MS = 5
_QUICK_S = 3.0


class PythonTransactionalProducer(KafkaTransactionalProducer):
    """`ports.TransactionalProducer` on kafka-python.

    kafka-python's calls for offsets, commit and abort have no time limit, and never return if the broker
    restarts during a transaction. So each of these calls gets a limit here. Upstream issue: none found.
    """

    # ValueError: the partition does not exist. TypeError: a message that `unsendable` would have returned.
    _raised = (errors.KafkaError, ValueError, TypeError)

    def __init__(self, access: Access, transactional_id: str, topics: Collection[str] = ()) -> None:
        super().__init__(access, transactional_id, ERRORS, topics)
        self._access = access
        self._id = transactional_id
        self._futures: list[Any] = []
        self._sent_last: tuple[Any, float] | None = None
        """The last message of the open transaction, and when it was sent."""
        try:
            self._make()
        except BrokerError:
            self._thread.close()
            raise

    def _make(self) -> None:
        producer = make_producer(
            self._access,
            self._batches.now,
            transactional_id=self._id,
            transaction_timeout_ms=self._access.settings.transaction_timeout_ms,
            linger_ms=_LINGER_MS,
        )
        try:
            self._thread.within(self._deadline_s + MAX_BLOCK_MS / 1000, producer.init_transactions)
        except (errors.KafkaError, DeadlineError) as error:
            cut_off(producer)
            if "InvalidTransactionTimeout" in str(error):
                raise self._timeout_too_long() from error
            if isinstance(error, errors.AuthorizationError):
                raise ERRORS.translated(error, f"{self._name}: start") from error
            raise AbortableError(f"{self._name}: start: {reason(error)}; trying again") from error
        self._producer = producer

    def _end(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None and (self._dead or self._open):
            cut_off(producer)
        elif producer is not None:
            shut(producer)

    def _send(self, topic: str, partition: int | None, messages: Messages) -> None:
        send, now_ms, sent_s = self._producer.send, self._clock.now_ms(), time.monotonic()
        for key, value, headers, stamp in zip(
            messages.keys, messages.values, messages.headers, messages.timestamps_ms, strict=True
        ):
            future = send(topic, value, key, list(headers), partition, now_ms if stamp < 0 else stamp)
            # If the metadata says "not authorised", send() returns a failed future without failing the
            # transaction, which would then commit without this message.
            if future.is_done and future.failed():
                raise future.exception
            self._futures.append(future)
        if len(messages):
            self._sent_last = self._futures[-1], sent_s

    def _send_offsets(self, offsets: Mapping[Partition, Committed], metadata: Any) -> None:
        targets = {
            TopicPartition(*part): offset_and_metadata(committed) for part, committed in offsets.items()
        }
        send = partial(self._producer.send_offsets_to_transaction, targets, metadata)
        self._call("offsets", send, self._life_s)

    def _commit(self) -> None:
        self._call("commit", self._flush_and_commit, self._deadline_s)
        self._forget_sent()

    def _flush_and_commit(self) -> None:
        # Flush first. commit_transaction() waits for unsent messages itself, but if the transaction fails
        # during that wait, it misses the wake-up and never returns.
        self._producer.flush(self._deadline_s)
        for future in self._futures:
            if future.failed():
                raise future.exception
        if self._sent_last is not None:
            note_time(self._clock, *self._sent_last)
        self._producer.commit_transaction()

    def _abort(self, seconds: float) -> None:
        self._forget_sent()
        if self._is_too_large:
            # The batches behind a refused one arrive out of sequence. kafka-python then raises its epoch, and
            # refuses to abort before that is done. The start of the next producer aborts the transaction.
            # Upstream issue: none found.
            self._replace()
            return
        self._thread.within(seconds, self._producer.abort_transaction)

    def _forget_sent(self) -> None:
        self._futures.clear()
        self._sent_last = None

    def close(self) -> None:
        self.closed = True
        # An open transaction blocks every read-committed reader until it times out, so abort it even if the
        # producer is finished.
        if self._open:
            try:
                self._abort(_QUICK_S)
            except (errors.KafkaError, DeadlineError, BrokerError):
                self._dead = True
            self._open = False
        self._thread.close()
        self._end()

    def _first(self, error: Exception) -> Exception:
        # After the first error all messages on their way fail too, with other errors.
        first = first_error(self._producer)
        if first is None or ERRORS.too_large(error):
            return error
        is_unspecific = type(error) is errors.KafkaError and isinstance(first, errors.AuthorizationError)
        return first if is_unspecific or ERRORS.too_large(first) else error
