"""Transactions with kafka-python, and around its traps (3.0.12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from kafka import TopicPartition, errors
from kafka.structs import OffsetAndMetadata

from twinsieve.pipeline.broker.ports import (
    AbortableError,
    Committed,
    FatalError,
    Membership,
    Messages,
    Partition,
)
from twinsieve.pipeline.kafka.deadline import DeadlineError, within
from twinsieve.pipeline.kafka.kafka_python.group_consumer import PythonMember
from twinsieve.pipeline.kafka.kafka_python.options import reason, translated
from twinsieve.pipeline.kafka.kafka_python.producers import MAX_BLOCK_MS, cut_off, make_producer, shut
from twinsieve.pipeline.kafka.limits import Limits
from twinsieve.pipeline.kafka.slot import taken
from twinsieve.pipeline.kafka.transacting import Transacting
from twinsieve.pipeline.settings.model import KafkaSettings

_FENCED = (errors.ProducerFencedError, errors.InvalidProducerEpochError)
_LINGER_MS = 5
_QUICK_S = 3.0


class PythonTransactor(Transacting):
    """`ports.Transactor` on kafka-python."""

    def __init__(
        self,
        settings: KafkaSettings,
        options: Mapping[str, Any],
        transactional_id: str,
        limits: Limits,
    ) -> None:
        super().__init__(limits)
        self._deadline_s = settings.request_timeout_ms / 1000
        # As in confluent_transactor: older than its time-out a transaction is lost, so nothing is gained by
        # waiting longer for its offsets or its abort. The answer may never come, above all when their
        # coordinator has died.
        self._life_s = min(self._deadline_s, settings.transaction_timeout_ms / 1000)
        self._heartbeats_s = settings.session_timeout_ms / 2000
        self._fenced: Callable[[], bool] | None = None
        self._name = f"transaction {transactional_id}"
        self._dead = False
        self._futures: list[Any] = []
        self._producer = make_producer(
            settings,
            options,
            transactional_id=transactional_id,
            transaction_timeout_ms=settings.transaction_timeout_ms,
            linger_ms=_LINGER_MS,
        )
        try:
            within(self._deadline_s + MAX_BLOCK_MS / 1000, self._producer.init_transactions)
        except (errors.KafkaError, DeadlineError) as error:
            cut_off(self._producer)
            if "InvalidTransactionTimeout" in str(error):
                raise FatalError(
                    f"{self._name}: kafka.transaction_timeout is above what the broker allows; "
                    "lower it, or raise its transaction.max.timeout.ms"
                ) from error
            if isinstance(error, errors.AuthorizationError):
                raise translated(error, f"{self._name}: start") from error
            raise AbortableError(f"{self._name}: start: {reason(error)}; trying again") from error

    def begin(self) -> None:
        self._call("begin", self._producer.begin_transaction, self._deadline_s)
        self._open = True

    def send(self, topic: str, partition: int | None, messages: Messages) -> None:
        self._require_open("send")
        where = topic if partition is None else str(Partition(topic, partition))
        send = self._producer.send
        try:
            for key, value, headers, stamp in zip(
                messages.keys, messages.values, messages.headers, messages.timestamps_ms, strict=True
            ):
                future = send(topic, value, key, list(headers), partition, None if stamp < 0 else stamp)
                # When metadata says "not authorised", send() returns a failed future, the transaction
                # knows nothing of it and would commit without the record.
                if future.is_done and future.failed():
                    raise future.exception
                self._futures.append(future)
        except (errors.KafkaError, ValueError, TypeError) as error:
            # ValueError: no such partition. TypeError: a message that `unsendable` would have named.
            self._fail(f"send to {where}", error)

    def send_offsets(self, offsets: Mapping[Partition, Committed], membership: Membership) -> None:
        self._require_open("send_offsets")
        self._require_member(membership)
        member = cast(PythonMember, membership.handle)
        self._fenced = member.fenced
        held = {
            TopicPartition(*partition): OffsetAndMetadata(committed.offset, committed.metadata, -1)
            for partition, committed in offsets.items()
        }
        self._call(
            "offsets",
            lambda: self._producer.send_offsets_to_transaction(held, member.metadata),
            self._life_s,
        )

    def commit(self) -> None:
        self._require_open("commit")
        self._call("commit", self._flush_and_commit, self._deadline_s)
        self._open = False
        self._futures.clear()

    def _flush_and_commit(self) -> None:
        # commit_transaction() alone loses its wake-up when the transaction turns abortable while it waits
        # for unsent records, and then never returns; with nothing unsent it cannot.
        self._producer.flush(self._deadline_s)
        for future in self._futures:
            if future.failed():
                raise future.exception
        self._producer.commit_transaction()

    def abort(self) -> None:
        if not self._open:
            return
        self._alive()
        self._futures.clear()
        try:
            within(self._life_s, self._producer.abort_transaction)
        except (errors.KafkaError, DeadlineError) as error:
            # After an internal epoch bump the client is in a state from which abort cannot leave; and every
            # call of a producer that met a fatal error raises. A new producer of the same id aborts for it.
            self._dead = True
            displaced = isinstance(error, _FENCED) and taken(self._fenced, self._heartbeats_s)
            said = f"{self._name}: abort: {reason(error)}; new clients are needed"
            raise FatalError(said, fenced=displaced) from error
        self._open = False

    def close(self) -> None:
        self.closed = True
        # Left open it would hold up every reader until it times out, so even a finished producer tries.
        if self._open:
            self._open = False
            try:
                within(_QUICK_S, self._producer.abort_transaction)
            except (errors.KafkaError, DeadlineError):
                cut_off(self._producer)
                return
        if self._dead:
            cut_off(self._producer)
        else:
            shut(self._producer)

    def _alive(self) -> None:
        if self._dead or self.closed:
            raise FatalError(f"{self._name}: closed, or finished by an earlier error; new clients are needed")

    def _call(self, doing: str, call: Callable[[], object], seconds: float) -> None:
        self._alive()
        try:
            within(seconds, call)
        except DeadlineError as error:
            # send_offsets_to_transaction and commit_transaction wait without limit; after a broker restart
            # inside a transaction their answer never comes.
            self._dead = True
            raise FatalError(f"{self._name}: {doing}: {error}; new clients are needed") from error
        except (errors.KafkaError, ValueError) as error:
            self._fail(doing, error)

    def _fail(self, doing: str, error: Exception) -> NoReturn:
        error = self._first(error)
        said = translated(error, f"{self._name}: {doing}")
        if isinstance(said, FatalError):
            self._dead = True
            if isinstance(error, _FENCED):
                said.fenced = taken(self._fenced, self._heartbeats_s)
        raise said from error

    def _first(self, error: Exception) -> Exception:
        """The refusal that failed the transaction, where a later call says it in text alone; else `error`."""
        first = self._producer._transaction_manager.last_error
        told = type(error) is errors.KafkaError and isinstance(first, errors.AuthorizationError)
        return first if told else error
