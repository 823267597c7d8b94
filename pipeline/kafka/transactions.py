"""Transactions: what both clients do the same way, whatever the library."""

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
    Committed,
    FatalError,
    Membership,
    Messages,
    MovedOnError,
    Partition,
)
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.deadline import CallThread, DeadlineError
from twinsieve.pipeline.kafka.errors import ErrorRules
from twinsieve.pipeline.kafka.limits import BatchBytes

_FENCED_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class KafkaMembership(Membership):
    """A membership, and what its library wants to know of it.

    metadata: the library's own form, for the offsets of a transaction
    poll_fenced: polls the consumer, and returns whether another process displaced this member; what the poll
        brought is dropped
    """

    metadata: Any
    poll_fenced: Callable[[], bool]

    def is_stale(self) -> bool:
        """Whether the consumer has another member id now, or soon: it lost its session and joined again."""
        return False


class KafkaTransactionalProducer(Client):
    """The rules of `ports.TransactionalProducer`: what is refused before the library does anything, what ends
    the client, and whether its slot was taken.

    Subclasses make `_producer`, and say what its calls are. It is made again, with smaller batches, if
    a topic refused a batch for its size.
    """

    _producer: Any
    _raised: tuple[type[Exception], ...]
    """What calls of the producer raise, also where a message or partition was at fault."""

    def __init__(
        self, access: Access, transactional_id: str, errors: ErrorRules, topics: Collection[str]
    ) -> None:
        settings = access.settings
        self._limits = access.limits
        self._batches = BatchBytes(access.limits, topics)
        self._is_too_large = False
        """The producer makes batches that a topic has refused."""
        self._clock = access.clock
        self._errors = errors
        self._unfinished: tuple[type[Exception], ...] = (*errors.raised, DeadlineError)
        self._name = f"transaction {transactional_id}"
        self._deadline_s = settings.request_timeout_ms / 1000
        # A transaction that is older than its time-out is lost, so nothing is gained by waiting longer for
        # its offsets or its abort. After an outage their answer may never come, above all when their
        # coordinator has died.
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
        if self._is_too_large:
            self._end()
            self._make()
            self._is_too_large = False
        self._call("begin", self._producer.begin_transaction)
        self._open = True

    def send(self, topic: str, partition: int | None, messages: Messages) -> None:
        self._require_open("send")
        where = topic if partition is None else str(Partition(topic, partition))
        self._call(f"send to {where}", partial(self._send, topic, partition, messages))

    def send_offsets(self, offsets: Mapping[Partition, Committed], membership: Membership) -> None:
        self._require_open("send_offsets")
        # With what a consumer that has left its group says of itself the broker asks no questions: it would
        # commit for a process that no longer owns the partition.
        if membership.generation < 0 or not isinstance(membership, KafkaMembership):
            raise MovedOnError("offsets: not a member of the group any more")
        self._membership = membership
        self._send_offsets(offsets, membership.metadata)

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
        except self._unfinished as error:
            # The library may be in a state from which no abort leads out; a new producer of the same
            # transactional id aborts for this one.
            displaced = self._errors.may_be_fenced(error) and self._is_displaced()
            raise self._finished("abort", self._errors.reason(error), fenced=displaced) from error
        self._open = False

    @abstractmethod
    def _make(self) -> None:
        """Make `_producer` with batches as they are to be now, and hold the slot. raises: BrokerError"""

    @abstractmethod
    def _end(self) -> None:
        """Give `_producer` up, if there is one; None stands in its place."""

    @abstractmethod
    def _send(self, topic: str, partition: int | None, messages: Messages) -> None: ...

    @abstractmethod
    def _send_offsets(self, offsets: Mapping[Partition, Committed], metadata: Any) -> None: ...

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def _abort(self, seconds: float) -> None: ...

    def _first(self, error: Exception) -> Exception:
        """What failed the transaction, where a later call says only that something has; else `error`."""
        return error

    def _where(self, doing: str, error: Exception) -> str:  # noqa: ARG002 - for a library that tells it too late
        """What was being done when this error arose."""
        return doing

    def _call(self, doing: str, call: Callable[[], object], seconds: float | None = None) -> None:
        """Make a call of the producer; `seconds`: no longer than that, for one that keeps no limit itself."""
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
        if self._errors.too_large(error) and not self._is_too_large:
            self._batches.refused()
            self._is_too_large = True
        doing = self._where(doing, error)
        broker_error = self._errors.translated(error, f"{self._name}: {doing}")
        if isinstance(broker_error, FatalError):
            stale = self._membership is not None and self._membership.is_stale()
            if broker_error.fenced and stale:
                # Under the id of before, that is; whether another process has its name, the consumer learns.
                why = f"{self._errors.reason(error)}; it joined again"
                raise AbortableError(f"{self._name}: {doing}: {why}") from error
            self._dead = True
            if self._errors.may_be_fenced(error):
                broker_error.fenced = self._is_displaced()
        raise broker_error from error

    def _finished(self, doing: str, why: object, *, fenced: bool = False) -> FatalError:
        self._dead = True
        return FatalError(f"{self._name}: {doing}: {why}; new clients are needed", fenced=fenced)

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
            raise FatalError(f"{self._name}: closed, or finished by an earlier error; new clients are needed")

    def _is_displaced(self) -> bool:
        """Whether another process of the same member name displaced the consumer whose offsets this commits.

        Kafka says "producer fenced" both when another process has taken over a transactional id and when a
        transaction merely timed out, for instance while the broker was away. A process must end in the first
        case and continue in the second. The membership is conclusive: a process that takes a slot over takes
        its member name too. A consumer learns of it by a heartbeat, so a few heartbeats are waited for.
        """
        if self._membership is None:
            return False
        deadline = time.monotonic() + self._heartbeats_s
        while not self._membership.poll_fenced():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_FENCED_POLL_S)
        return True
