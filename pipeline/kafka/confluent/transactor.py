"""Transactions with confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException, Producer

from twinsieve.pipeline.broker.ports import (
    AbortableError,
    Committed,
    FatalError,
    Membership,
    Messages,
    Partition,
)
from twinsieve.pipeline.kafka.confluent.membership import ConfluentMember
from twinsieve.pipeline.kafka.confluent.options import Heard, cause, may_be_fenced, reason, translated
from twinsieve.pipeline.kafka.confluent.producers import CLOSE_S, held_offsets, producer_options, put, shut
from twinsieve.pipeline.kafka.deadline import DeadlineError, within
from twinsieve.pipeline.kafka.limits import Limits
from twinsieve.pipeline.kafka.slot import taken
from twinsieve.pipeline.kafka.transacting import Transacting
from twinsieve.pipeline.settings.model import KafkaSettings

_GRACE_S = 2.0
_CONNECT_S = 1.0
_SLICE_S = 0.05
_FIRST_PAUSE_S = 0.02
_MAX_PAUSE_S = 0.5
_LATER = (KafkaError.CONCURRENT_TRANSACTIONS, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)


class ConfluentTransactor(Transacting):
    """`ports.Transactor` on confluent-kafka."""

    def __init__(
        self,
        settings: KafkaSettings,
        options: Mapping[str, Any],
        transactional_id: str,
        limits: Limits,
    ) -> None:
        super().__init__(limits)
        self._deadline_s = settings.request_timeout_ms / 1000
        # After an outage librdkafka may ask in vain until its time is up. A transaction that is older than
        # its time-out is lost anyway, so nothing is gained by waiting longer for its offsets or its abort.
        self._life_s = min(self._deadline_s, settings.transaction_timeout_ms / 1000)
        self._heartbeats_s = settings.session_timeout_ms / 2000
        self._member: ConfluentMember | None = None
        self._name = f"transaction {transactional_id}"
        self._dead = False
        self._failure: KafkaError | None = None
        self._topics: set[str] = set()
        own = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": settings.transaction_timeout_ms,
            # librdkafka demands that a message's time to live is no longer than its transaction's.
            "delivery.timeout.ms": settings.transaction_timeout_ms,
            "socket.timeout.ms": min(options["socket.timeout.ms"], settings.transaction_timeout_ms),
            # Longer, and messages would leave after the offsets that they go with, not beside them.
            "linger.ms": 1,
        }
        try:
            self._producer = self._started({**producer_options(settings, options, Heard()), **own})
        except KafkaException as error:
            inner = cause(error)
            if inner is not None and inner.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
                raise FatalError(
                    f"{self._name}: kafka.transaction_timeout is above what the broker allows; "
                    "lower it, or raise its transaction.max.timeout.ms"
                ) from error
            said = translated(error, f"{self._name}: start")
            raise said from error

    def _started(self, options: dict[str, Any]) -> Any:
        """A producer that holds the transactional id.

        The first request for it ends what the last holder left open, and is told to come again. To the
        broker that is a matter of milliseconds, but librdkafka waits 500: so another producer asks instead.
        One whose request is still on its way is not given up: late, it would fence the next.
        """
        deadline = time.monotonic() + self._deadline_s
        pause_s = _FIRST_PAUSE_S
        while True:
            producer = Producer(options)
            # Asked before it has any connection, it looks for the coordinator again only after 500 ms.
            # The first answer comes from a bootstrap address, whose connection ends then.
            with suppress(KafkaException):
                for _ in range(2):
                    producer.list_topics(topic="__consumer_offsets", timeout=_CONNECT_S)
            said = self._initialized(producer, deadline)
            if said is None:
                return producer
            if said.args[0].code() not in _LATER or time.monotonic() >= deadline:
                # Its end may take its time, and comes with the last reference, of which a traceback has one.
                kept = [producer]
                del producer
                shut(kept, 0.0)
                raise said.with_traceback(None)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)

    def _initialized(self, producer: Any, deadline: float) -> KafkaException | None:
        """What the broker refused it with. Asked in slices: librdkafka tells only when time is up."""
        while True:
            try:
                producer.init_transactions(min(_SLICE_S, max(0.0, deadline - time.monotonic())))
                return None
            except KafkaException as error:
                said = error.args[0]
                if said.code() in _LATER or not said.retriable() or time.monotonic() >= deadline:
                    return error

    def begin(self) -> None:
        self._alive()
        self._call("begin", self._producer.begin_transaction)
        self._failure = None
        self._topics.clear()
        self._open = True

    def send(self, topic: str, partition: int | None, messages: Messages) -> None:
        self._require_open("send")
        self._topics.add(topic)
        where = topic if partition is None else str(Partition(topic, partition))

        def send_all() -> None:
            for row in range(len(messages)):
                put(self._producer, topic, partition, messages, row, self._told)
            self._producer.poll(0)

        self._call(f"send to {where}", send_all)

    def _told(self, error: KafkaError | None, _: object) -> None:
        self._failure = self._failure or error

    def send_offsets(self, offsets: Mapping[Partition, Committed], membership: Membership) -> None:
        self._require_open("send_offsets")
        self._require_member(membership)
        member = cast(ConfluentMember, membership.handle)
        self._member = member
        held = held_offsets(offsets)
        send = partial(self._producer.send_offsets_to_transaction, held, member.metadata, self._life_s)
        try:
            # Its own limit does not hold while it looks for a coordinator that left the cluster.
            self._call("offsets", lambda: within(self._life_s + _GRACE_S, send))
        except DeadlineError as error:
            self._dead = True
            raise FatalError(f"{self._name}: offsets: {error}; new clients are needed") from error

    def commit(self) -> None:
        self._require_open("commit")
        deadline = time.monotonic() + self._deadline_s
        while True:
            left = max(0.1, deadline - time.monotonic())
            try:
                self._call("commit", partial(self._producer.commit_transaction, left))
                break
            except AbortableError as error:
                # A commit that timed out goes on by itself and may be resumed; its outcome is open till then.
                inner = error.__cause__
                kind = cause(inner) if isinstance(inner, KafkaException) else None
                if kind is None or not kind.retriable() or kind.txn_requires_abort():
                    raise
                if time.monotonic() >= deadline:
                    self._dead = True
                    said = f"{self._name}: commit: no answer within {self._deadline_s:g} s"
                    raise FatalError(f"{said}; new clients are needed") from inner
        self._open = False

    def abort(self) -> None:
        if not self._open:
            return
        self._alive()
        try:
            self._producer.abort_transaction(self._life_s)
        except KafkaException as error:
            self._dead = True
            displaced = may_be_fenced(error) and self._is_displaced()
            said = f"{self._name}: abort: {reason(error)}; new clients are needed"
            raise FatalError(said, fenced=displaced) from error
        self._open = False

    def close(self) -> None:
        self.closed = True
        if self._producer is None:
            return
        kept, self._producer = [self._producer], None
        # If its broker is away or it is fenced, the next holder of the slot aborts for it.
        with suppress(KafkaException):
            if self._open and not self._dead:
                kept[0].abort_transaction(CLOSE_S)
        self._open = False
        shut(kept, 0.0)

    def _is_displaced(self) -> bool:
        return taken(None if self._member is None else self._member.fenced, self._heartbeats_s)

    def _alive(self) -> None:
        if self._dead or self.closed:
            raise FatalError(f"{self._name}: closed, or finished by an earlier error; new clients are needed")

    def _call(self, doing: str, call: Callable[[], object]) -> None:
        self._alive()
        try:
            call()
        except (KafkaException, BufferError) as refusal:
            error = self._first(refusal)
            inner = cause(error)
            if inner is not None and inner.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                # librdkafka does not say which, and it need not be the one of this call.
                doing = f"{doing.partition(' to ')[0]} to {', '.join(sorted(self._topics))}"
            said = translated(error, f"{self._name}: {doing}")
            stale = self._member is not None and self._member.stale
            if isinstance(said, FatalError) and said.fenced and stale:
                # Under the id of before, that is; whether another process has its name, the consumer learns.
                raise AbortableError(f"{self._name}: {doing}: {reason(error)}; it joined anew") from error
            if isinstance(said, FatalError):
                self._dead = True
                if may_be_fenced(error):
                    said.fenced = self._is_displaced()
            raise said from error

    def _first(self, error: Exception) -> Exception:
        """What failed the transaction, where librdkafka says only that something has; else `error`.

        A partition is registered beside the calls. If that is refused, produce() and offsets on their way
        meet an "erroneous state". Only a call that begins later says why; this one changes nothing in an open
        transaction. Messages that fail without their transaction are counted at the commit; their delivery
        reports say why.
        """
        inner = cause(error)
        if inner is None or not self._open:
            return error
        if inner.code() == KafkaError._STATE:
            try:
                self._producer.begin_transaction()
            except KafkaException as first:
                known = cause(first)
                return error if known is None or known.code() == KafkaError._STATE else first
        if inner.code() == KafkaError._INCONSISTENT and self._failure is not None:
            return KafkaException(self._failure)
        return error
