"""The transactional producer on kafka-python, with workarounds for faults of version 3.0.12."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from kafka import TopicPartition, errors
from kafka.structs import ConsumerGroupMetadata

from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    Messages,
    Partition,
    row_spans,
)
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.deadline import DeadlineError
from twinsieve.pipeline.kafka.errors import Meaning
from twinsieve.pipeline.kafka.kafka_python.options import ERRORS, reason
from twinsieve.pipeline.kafka.kafka_python.patches import (
    append_batches,
    cut_off,
    first_error,
    require_partition,
)
from twinsieve.pipeline.kafka.kafka_python.producers import MAX_BLOCK_MS, make_producer, note_time, shut
from twinsieve.pipeline.kafka.kafka_python.reading import offset_and_metadata
from twinsieve.pipeline.kafka.transactions import KafkaTransactionalProducer
from twinsieve.stages.rows.record_batch import EncodedBatch, encode_batches

_LINGER_MS = 5
_ENCODED_BYTES = 2 << 20
"""Bytes of keys and values that are encoded in one call, which takes a few times as much memory."""
_QUICK_S = 3.0
_TOLD_ONCE = frozenset({Meaning.DENIED, Meaning.EPOCH_OVER})
"""Only the first error of a producer says these; the later ones are unspecific."""


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
        self._unsent: list[tuple[TopicPartition, EncodedBatch]] = []
        """Batches of the open transaction that are queued together, once all of them are known."""
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
        if not len(messages):
            return
        if partition is None:
            # The library's partitioner decides, row by row.
            self._send_rows(topic, messages)
        else:
            target, stamps = TopicPartition(topic, partition), self._stamps(messages)
            require_partition(self._producer, target)
            sizes = [
                len(key or b"") + len(value or b"")
                for key, value in zip(messages.keys, messages.values, strict=True)
            ]
            for part in row_spans(sizes, _ENCODED_BYTES, len(sizes)):
                columns = stamps[part], messages.keys[part], messages.values[part], messages.headers[part]
                self._unsent += [(target, batch) for batch in encode_batches(*columns, self._batches.now)]

    def _send_rows(self, topic: str, messages: Messages) -> None:
        columns = messages.keys, messages.values, messages.headers, self._stamps(messages)
        sent_s = time.monotonic()
        for key, value, headers, stamp in zip(*columns, strict=True):
            future = self._producer.send(topic, value, key, list(headers), timestamp_ms=stamp)
            # If the metadata says "not authorised", send() returns a failed future without failing the
            # transaction, which would then commit without this message.
            if future.is_done and future.failed():
                raise future.exception
            self._futures.append(future)
        self._sent_last = self._futures[-1], sent_s

    def _stamps(self, messages: Messages) -> list[int]:
        """The timestamps to send, ms since 1970: of a message without one, the broker's time."""
        stamps = messages.timestamps_ms
        if min(stamps) >= 0:
            return stamps
        now_ms = self._clock.now_ms()
        if now_ms is None:
            now_ms = int(time.time() * 1000)
        return [now_ms if stamp < 0 else stamp for stamp in stamps]

    def _send_unsent(self) -> None:
        if self._unsent:
            batches, self._unsent = self._unsent, []
            sent_s = time.monotonic()
            self._futures += append_batches(self._producer, batches)
            self._sent_last = self._futures[-1], sent_s

    def _send_offsets(self, offsets: Mapping[Partition, Committed], metadata: Any) -> None:
        self._call("send", self._send_unsent)
        targets = {
            TopicPartition(*part): offset_and_metadata(committed) for part, committed in offsets.items()
        }
        send = partial(self._producer.send_offsets_to_transaction, targets, metadata)
        self._call("offsets", send, self._life_s)

    def _outside(self, group: str) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(group)

    def _commit(self) -> None:
        self._call("commit", self._flush_and_commit, self._deadline_s)
        self._forget_sent()

    def _flush_and_commit(self) -> None:
        self._send_unsent()
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
        if self._is_spent:
            # kafka-python raises its epoch when batches arrive out of sequence, and refuses to abort before
            # that is done. The start of the next producer aborts the transaction.
            # Upstream issue: none found.
            self._replace()
        else:
            self._thread.within(seconds, self._producer.abort_transaction)
        self._forget_sent()

    def _forget_sent(self) -> None:
        self._unsent.clear()
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
        # After the first error all messages on their way fail too, with other errors. Later calls just say
        # that the producer is in an error state.
        first = first_error(self._producer) or self._fenced()
        if first is None or ERRORS.meaning(error) is Meaning.REFUSED_RECORD:
            return error
        is_unspecific = type(error) is errors.KafkaError and ERRORS.meaning(first) in _TOLD_ONCE
        return first if is_unspecific or ERRORS.meaning(first) is Meaning.REFUSED_RECORD else error

    def _fenced(self) -> Exception | None:
        """How the broker refused a message whose producer may be fenced. kafka-python then asks for a new
        epoch, and until it has the answer its calls do not say why they fail."""
        failed = (future.exception for future in self._futures if future.failed())
        return next((error for error in failed if ERRORS.may_be_fenced(error)), None)
