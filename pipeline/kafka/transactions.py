"""The transactional producer, with workarounds for faults of kafka-python 3.0.12."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np
from kafka import TopicPartition, errors
from kafka.structs import ConsumerGroupMetadata

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    Copies,
    FatalError,
    Membership,
    Messages,
    MovedOnError,
    Partition,
    RefusedRecordError,
)
from twinsieve.pipeline.kafka.access import Access
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.committed import offset_and_metadata
from twinsieve.pipeline.kafka.deadline import CallThread, DeadlineError
from twinsieve.pipeline.kafka.errors import (
    NAME_TAKEN,
    Meaning,
    may_be_fenced,
    meaning,
    reason,
    too_large,
    translated,
)
from twinsieve.pipeline.kafka.patches import (
    append_batches,
    cut_off,
    first_error,
    partitions_to_choose,
    require_partition,
    send_offsets,
)
from twinsieve.pipeline.kafka.producers import MAX_BLOCK_MS, encoded, make_producer, note_time, shut
from twinsieve.pipeline.kafka.size_limits import BatchBytes
from twinsieve.stages.rows.byte_column import as_column
from twinsieve.stages.rows.key_partitions import NO_KEY, partitions_of

_LINGER_MS = 5
_QUICK_S = 3.0
_FENCED_LOOK_S = 0.05
_RAISED = (errors.KafkaError, ValueError, TypeError)
"""What calls of the producer raise. ValueError: the partition does not exist. TypeError: a message that
`unsendable` would have returned."""
_UNFINISHED = (errors.KafkaError, DeadlineError)
_TOLD_ONCE = frozenset({Meaning.DENIED, Meaning.EPOCH_OVER})
"""Only the first error of a producer says these; the later ones are unspecific."""


@dataclass(frozen=True, slots=True)
class KafkaMembership(Membership):
    """A membership, with what kafka-python needs to commit offsets for it.

    metadata: the group metadata as the library's own object, sent with the offsets of a transaction
    is_fenced: returns whether another process displaced this member (joined under its name)
    """

    metadata: ConsumerGroupMetadata
    is_fenced: Callable[[], bool]


class KafkaTransactionalProducer(Client):
    """`ports.TransactionalProducer` on kafka-python.

    kafka-python's calls for offsets, commit and abort have no time limit, and never return if the broker
    restarts during a transaction. So each of these calls gets a limit here. Upstream issue: none found.

    If a topic refused a batch, a new producer of the library is made for the next transaction, with smaller
    batches if their size was the cause.
    """

    def __init__(self, access: Access, transactional_id: str, topics: Collection[str] = ()) -> None:
        settings = access.settings
        self._access = access
        self._id = transactional_id
        self._name = f"transaction {transactional_id}"
        self._topics = frozenset(topics)
        self._batches = BatchBytes(access.limits, topics)
        self._is_spent = False
        """True if a topic has refused a batch. Batches behind it arrive out of sequence, those of the next
        transaction too, so a new producer is needed."""
        self._deadline_s = settings.request_timeout_ms / 1000
        # The broker aborts a transaction that is older than its time-out, so waiting longer for the answer
        # to its offsets or its abort is useless. After an outage that answer may never come, above all if
        # the coordinator has died.
        self._life_s = min(self._deadline_s, settings.transaction_timeout_ms / 1000)
        self._heartbeats_s = settings.session_timeout_ms / 2000
        self._producer: Any = None
        self._open = False
        self._dead = False
        self._membership: KafkaMembership | None = None
        self._coordinators: dict[str, int | None] = {}
        self._thread = CallThread()
        self._random = np.random.default_rng()
        self._unsent: dict[TopicPartition, list[Messages | Copies]] = {}
        """Messages of the open transaction that are queued together, once all of them are known."""
        self._futures: list[Any] = []
        self._sent_last: tuple[Any, float] | None = None
        """The last message of the open transaction, and when it was sent."""
        try:
            self._make()
        except BrokerError:
            self._thread.close()
            raise

    def unsendable(self, topic: str, messages: Messages | Copies) -> dict[int, DeadLetterReason]:
        return self._access.limits.unsendable(topic, messages)

    def begin(self) -> None:
        self._alive()
        if self._is_spent:
            self._replace()
        self._call("begin", self._producer.begin_transaction)
        self._open = True

    def send(self, topic: str, partition: int | None, messages: Messages | Copies) -> None:
        self._require_open("send")
        where = topic if partition is None else str(Partition(topic, partition))
        self._call(f"send to {where}", partial(self._send, topic, partition, messages))

    def _send(self, topic: str, partition: int | None, messages: Messages | Copies) -> None:
        if not len(messages):
            return
        parts = [(partition, messages)] if partition is not None else self._by_key(topic, messages)
        for number, part in parts:
            target = TopicPartition(topic, number)
            require_partition(self._producer, target)
            self._unsent.setdefault(target, []).append(part)

    def _by_key(self, topic: str, messages: Messages | Copies) -> list[tuple[int, Messages | Copies]]:
        """The messages by the partition that Kafka's clients choose for their keys. Those without a key go to
        any partition that has a leader."""
        numbers = partitions_of(as_column(messages.keys), len(self._producer.partitions_for(topic)))
        keyless = np.flatnonzero(numbers == NO_KEY)
        if len(keyless):
            numbers[keyless] = self._random.choice(partitions_to_choose(self._producer, topic), len(keyless))
        return [
            (number, messages.only(np.flatnonzero(numbers == number)))
            for number in np.unique(numbers).tolist()
        ]

    def _send_unsent(self) -> None:
        """Queue all batches together, now that all of them are known."""
        if self._unsent:
            unsent, self._unsent = self._unsent, {}
            clock, most = self._access.clock, self._batches.now
            batches = [(at, batch) for at, parts in unsent.items() for batch in encoded(parts, clock, most)]
            sent_s = time.monotonic()
            self._futures += append_batches(self._producer, batches)
            self._sent_last = self._futures[-1], sent_s

    def send_offsets(
        self, offsets: Mapping[Partition, Committed], membership: Membership, record: str = ""
    ) -> None:
        self._require_open("send_offsets")
        # Refuse the membership of a consumer that has left its group: the broker does not check such a
        # membership, and would commit for a process that no longer owns the partition.
        if membership.generation < 0 or not isinstance(membership, KafkaMembership):
            raise MovedOnError("offsets: this process is no longer a member of the consumer group")
        self._membership = membership
        # First those that the broker checks: it refuses an outdated membership, but anybody may commit for a
        # group without members.
        self._send_offsets(offsets, membership.metadata)
        if record:
            self._send_offsets(offsets, ConsumerGroupMetadata(record))

    def _send_offsets(self, offsets: Mapping[Partition, Committed], metadata: Any) -> None:
        self._call("send", self._send_unsent)
        targets = {
            TopicPartition(*part): offset_and_metadata(committed) for part, committed in offsets.items()
        }
        send = partial(send_offsets, self._producer, targets, metadata, self._coordinators)
        self._call("offsets", send, self._life_s)

    def commit(self) -> None:
        self._require_open("commit")
        self._call("commit", self._flush_and_commit, self._deadline_s)
        self._forget_sent()
        self._open = False

    def _flush_and_commit(self) -> None:
        self._send_unsent()
        # Flush first. commit_transaction() waits for unsent messages itself, but if the transaction fails
        # during that wait, it misses the wake-up and never returns.
        self._producer.flush(self._deadline_s)
        for future in self._futures:
            if future.failed():
                raise future.exception
        if self._sent_last is not None:
            note_time(self._access.clock, *self._sent_last)
        self._producer.commit_transaction()

    def abort(self) -> None:
        if not self._open:
            return
        self._alive()
        try:
            self._abort(self._life_s)
        except _UNFINISHED as failure:
            error = self._first(failure)
            # The library may be in a state in which every abort fails, so the client is finished. A new
            # producer of the same transactional id aborts the transaction.
            if may_be_fenced(error) and self._is_displaced():
                raise self._displaced("abort", error) from failure
            raise self._finished("abort", reason(error)) from failure
        except BrokerError as error:
            raise self._finished("abort", error) from error
        self._open = False

    def _replace(self) -> None:
        """Continue with a new `_producer`, whose batches are no larger than `_batches.now` bytes.

        raises: BrokerError; the next call tries again
        """
        self._end()
        self._make()
        self._is_spent = False

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
            except (*_UNFINISHED, BrokerError):
                self._dead = True
            self._open = False
        self._thread.close()
        self._end()

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
        except _UNFINISHED as error:
            cut_off(producer)
            if "InvalidTransactionTimeout" in str(error):
                why = (
                    "kafka.transaction_timeout is above what the broker allows; "
                    "lower it, or raise its transaction.max.timeout.ms"
                )
                raise FatalError(f"{self._name}: {why}") from error
            if isinstance(error, errors.AuthorizationError):
                raise translated(error, f"{self._name}: start") from error
            raise AbortableError(f"{self._name}: start: {reason(error)}; trying again") from error
        self._producer = producer

    def _end(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None and (self._dead or self._open):
            cut_off(producer)
        elif producer is not None:
            shut(producer)

    def _call(self, doing: str, call: Callable[[], object], seconds: float | None = None) -> None:
        """Make a call of the producer, and translate its errors.

        seconds: time limit, for a call that has no limit of its own; None: no limit here
        """
        self._alive()
        try:
            if seconds is None:
                call()
            else:
                self._thread.within(seconds, call)
        except DeadlineError as error:
            raise self._finished(doing, error) from error
        except _RAISED as error:
            self._fail(doing, error)

    def _fail(self, doing: str, refusal: Exception) -> NoReturn:
        error = self._first(refusal)
        if too_large(error) and not self._is_spent:
            self._batches.refused()
        broker_error = translated(error, f"{self._name}: {doing}")
        if isinstance(broker_error, RefusedRecordError):
            self._access.limits.forget(self._topics)  # somebody may just have changed them
            self._is_spent = True
        if isinstance(broker_error, FatalError):
            self._dead = True
            if may_be_fenced(error):
                if self._is_displaced():
                    raise self._displaced(doing, error) from error
                broker_error.fenced = False
        raise broker_error from error

    def _finished(self, doing: str, why: object) -> FatalError:
        self._dead = True
        return FatalError(f"{self._name}: {doing}: {why}; this producer must be replaced")

    def _displaced(self, doing: str, error: Exception) -> FatalError:
        self._dead = True
        why = f"{reason(error)}; {NAME_TAKEN}"
        return FatalError(f"{self._name}: {doing}: {why}", fenced=True)

    def _require_open(self, call: str) -> None:
        if not self._open:
            raise RuntimeError(f"{call} outside a transaction; call begin first")

    def _alive(self) -> None:
        if self._dead or self.closed:
            raise FatalError(f"{self._name}: closed, or failed earlier; this producer must be replaced")

    def _first(self, error: Exception) -> Exception:
        """The error that made the transaction fail, or `error` itself if no earlier one says more.

        After the first error all messages on their way fail too, with other errors. Later calls just say
        that the producer is in an error state.
        """
        first = first_error(self._producer) or self._fenced()
        if first is None or meaning(error) is Meaning.REFUSED_RECORD:
            return error
        is_unspecific = type(error) is errors.KafkaError and meaning(first) in _TOLD_ONCE
        return first if is_unspecific or meaning(first) is Meaning.REFUSED_RECORD else error

    def _fenced(self) -> Exception | None:
        """How the broker refused a message whose producer may be fenced. kafka-python then asks for a new
        epoch, and until it has the answer its calls do not say why they fail."""
        failed = (future.exception for future in self._futures if future.failed())
        return next((error for error in failed if may_be_fenced(error)), None)

    def _is_displaced(self) -> bool:
        """Whether another process took over the member name of the consumer whose offsets this commits.

        Kafka reports "producer fenced" both if another process has taken over the transactional id and if the
        transaction merely timed out, for instance while the broker was away. The process must end in the
        first case and continue in the second. The member name decides: a process that takes over a
        transactional id takes over the member name too. The consumer learns that by a heartbeat, so this
        call waits for a few heartbeats.
        """
        if self._membership is None:
            return False
        deadline = time.monotonic() + self._heartbeats_s
        while not self._membership.is_fenced():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_FENCED_LOOK_S)
        return True
