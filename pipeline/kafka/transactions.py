"""The part of a transactional producer that is the same for both client libraries."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    FatalError,
    Membership,
    Messages,
    MovedOnError,
    Partition,
    RefusedRecordError,
)
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.deadline import CallThread, DeadlineError
from twinsieve.pipeline.kafka.errors import NAME_TAKEN, ErrorRules
from twinsieve.pipeline.kafka.size_limits import BatchBytes

_FENCED_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class KafkaMembership(Membership):
    """A membership, with what the client library needs to commit offsets for it.

    metadata: the group metadata as the library's own object, sent with the offsets of a transaction
    poll_fenced: polls the consumer, and returns whether another process displaced this member (joined under
        its name); messages of that poll are dropped
    """

    metadata: Any
    poll_fenced: Callable[[], bool]

    def is_stale(self) -> bool:
        """Whether the member id is outdated, because the consumer lost its session and joined again."""
        return False


class KafkaTransactionalProducer(Client):
    """The rules of `ports.TransactionalProducer` that do not depend on the library.

    They decide which calls are refused before the library sees them, which errors make the client unusable,
    and whether another process has taken the slot (the transactional id).

    Subclasses make `_producer` and implement its calls. If a topic refused a batch, a new `_producer` is made
    for the next transaction, with smaller batches if their size was the cause.
    """

    _producer: Any
    _raised: tuple[type[Exception], ...]
    """Error classes that calls of the producer raise, including those for a bad message or partition."""

    def __init__(
        self, access: Access, transactional_id: str, errors: ErrorRules, topics: Collection[str]
    ) -> None:
        settings = access.settings
        self._limits = access.limits
        self._topics = frozenset(topics)
        self._batches = BatchBytes(access.limits, topics)
        self._is_spent = False
        """True if a topic has refused a batch. Batches behind it arrive out of sequence, those of the next
        transaction too, so a new producer is needed."""
        self._clock = access.clock
        self._errors = errors
        self._unfinished: tuple[type[Exception], ...] = (*errors.raised, DeadlineError)
        self._name = f"transaction {transactional_id}"
        self._deadline_s = settings.request_timeout_ms / 1000
        # The broker aborts a transaction that is older than its time-out, so waiting longer for the answer
        # to its offsets or its abort is useless. After an outage that answer may never come, above all if
        # the coordinator has died.
        self._life_s = min(self._deadline_s, settings.transaction_timeout_ms / 1000)
        self._heartbeats_s = settings.session_timeout_ms / 2000
        self._open = False
        self._dead = False
        self._membership: KafkaMembership | None = None
        self._thread = CallThread()

    def unsendable(self, topic: str, messages: Messages) -> dict[int, DeadLetterReason]:
        return self._limits.unsendable(topic, messages)

    def begin(self) -> None:
        self._alive()
        if self._is_spent:
            self._replace()
        self._call("begin", self._producer.begin_transaction)
        self._open = True

    def send(self, topic: str, partition: int | None, messages: Messages) -> None:
        self._require_open("send")
        where = topic if partition is None else str(Partition(topic, partition))
        self._call(f"send to {where}", partial(self._send, topic, partition, messages))

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
            self._send_offsets(offsets, self._outside(record))

    def commit(self) -> None:
        self._require_open("commit")
        self._commit()
        self._open = False

    def abort(self) -> None:
        if not self._open:
            return
        self._alive()
        try:
            self._abort(self._life_s)
        except self._unfinished as failure:
            error = self._first(failure)
            # The library may be in a state in which every abort fails, so the client is finished. A new
            # producer of the same transactional id aborts the transaction.
            if self._errors.may_be_fenced(error) and self._is_displaced():
                raise self._displaced("abort", error) from failure
            raise self._finished("abort", self._errors.reason(error)) from failure
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

    @abstractmethod
    def _make(self) -> None:
        """Make `_producer` with batches of `_batches.now` bytes, and take over the slot.

        raises: BrokerError
        """

    @abstractmethod
    def _end(self) -> None:
        """Close `_producer` if there is one, and set it to None."""

    @abstractmethod
    def _send(self, topic: str, partition: int | None, messages: Messages) -> None: ...

    @abstractmethod
    def _send_offsets(self, offsets: Mapping[Partition, Committed], metadata: Any) -> None: ...

    @abstractmethod
    def _outside(self, group: str) -> Any:
        """Group metadata, as the library has them, of a client that is no member of the group."""

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def _abort(self, seconds: float) -> None: ...

    def _first(self, error: Exception) -> Exception:
        """The error that made the transaction fail; `error` itself if the library holds no earlier one.

        After a failure, later calls may report only that the transaction has failed, without the cause.
        """
        return error

    def _where(self, doing: str, error: Exception) -> str:  # noqa: ARG002 - a library may report errors late
        """The action that caused this error: `doing`, unless the library reports errors of earlier calls."""
        return doing

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
        except self._raised as error:
            self._fail(doing, error)

    def _fail(self, doing: str, refusal: Exception) -> NoReturn:
        error = self._first(refusal)
        if self._errors.too_large(error) and not self._is_spent:
            self._batches.refused()
        doing = self._where(doing, error)
        broker_error = self._errors.translated(error, f"{self._name}: {doing}")
        if isinstance(broker_error, RefusedRecordError):
            self._limits.forget(self._topics)  # somebody may just have changed them
            self._is_spent = True
        if isinstance(broker_error, FatalError):
            stale = self._membership is not None and self._membership.is_stale()
            if broker_error.fenced and stale:
                # The broker fenced the old member id, which the consumer has replaced. If another process
                # has taken the member name, the consumer gets an error of its own.
                why = f"{self._errors.reason(error)}; the consumer has joined the group again"
                raise AbortableError(f"{self._name}: {doing}: {why}") from error
            self._dead = True
            if self._errors.may_be_fenced(error):
                if self._is_displaced():
                    raise self._displaced(doing, error) from error
                broker_error.fenced = False
        raise broker_error from error

    def _finished(self, doing: str, why: object) -> FatalError:
        self._dead = True
        return FatalError(f"{self._name}: {doing}: {why}; this producer must be replaced")

    def _displaced(self, doing: str, error: Exception) -> FatalError:
        self._dead = True
        why = f"{self._errors.reason(error)}; {NAME_TAKEN}"
        return FatalError(f"{self._name}: {doing}: {why}", fenced=True)

    def _timeout_too_long(self) -> FatalError:
        return FatalError(
            f"{self._name}: kafka.transaction_timeout is above what the broker allows; "
            "lower it, or raise its transaction.max.timeout.ms"
        )

    def _require_open(self, call: str) -> None:
        if not self._open:
            raise RuntimeError(f"{call} outside a transaction; call begin first")

    def _alive(self) -> None:
        if self._dead or self.closed:
            raise FatalError(f"{self._name}: closed, or failed earlier; this producer must be replaced")

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
        while not self._membership.poll_fenced():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_FENCED_POLL_S)
        return True
