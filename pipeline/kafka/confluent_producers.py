"""Writing with confluent-kafka: idempotent appends, transactions, and sends without them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn, cast

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from pipeline.kafka.confluent_consumers import ConfluentMember
from pipeline.kafka.confluent_options import Heard, cause, is_fenced_producer, reason, translated
from pipeline.kafka.limits import Limits
from pipeline.kafka.slot import taken
from pipeline.ports import AbortableError, Committed, FatalError, Membership, Messages, Partition
from pipeline.settings import KafkaSettings
from stages.errors import UsageError

_BATCH_BYTES = 256 << 10
_QUEUE_KBYTES = 64 << 10
_BLOCK_S = 5.0
_CLOSE_S = 2.0


def _options(settings: KafkaSettings, options: Mapping[str, Any], heard: Heard) -> dict[str, Any]:
    return {
        **options,
        **heard.options(),
        "acks": "all",
        "enable.idempotence": True,
        "batch.size": _BATCH_BYTES,
        "message.max.bytes": settings.message_bytes,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": max(_QUEUE_KBYTES, 2 * settings.message_bytes // 1024),
        "delivery.timeout.ms": settings.request_timeout_ms,
        "compression.type": settings.compression,
        # Kafka's own default; librdkafka's is CRC32, which sends a key elsewhere.
        "partitioner": "murmur2_random",
        "allow.auto.create.topics": False,
    }


def _put(
    producer: Producer, topic: str, partition: int | None, messages: Messages, row: int, told: Any
) -> None:
    more: dict[str, Any] = {} if partition is None else {"partition": partition}
    stamp = messages.timestamps_ms[row]
    if stamp >= 0:
        # confluent-kafka takes 0 for "now"; a millisecond off is nearer to 1970 than that.
        more["timestamp"] = max(1, stamp)
    headers = messages.headers[row]
    if headers:
        more["headers"] = list(headers)
    value, key = messages.values[row], messages.keys[row]
    deadline = time.monotonic() + _BLOCK_S
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=told, **more)
            return
        except BufferError:
            if time.monotonic() >= deadline:
                raise
            producer.poll(0.05)


class ConfluentAppender:
    """`ports.Appender` on confluent-kafka."""

    def __init__(self, settings: KafkaSettings, options: Mapping[str, Any], limits: Limits) -> None:
        self._heard = Heard()
        # Without the guarantee a message that timed out would be missing between those around it.
        self._options = {
            **_options(settings, options, self._heard),
            "enable.gapless.guarantee": True,
            "linger.ms": 0,
        }
        self._limits = limits
        self._failure: KafkaError | None = None
        self._waiting = 0
        self._round = 0
        self._producer: Producer | None = Producer(self._options)

    def append(self, partition: Partition, messages: Messages) -> None:
        """As `ports.Appender.append`."""
        refusal = self._limits.refusal(partition.topic, messages)
        if refusal is not None:
            advice = "raise its max.message.bytes or lower kafka.block_bytes"
            raise AbortableError(f"{partition}: {refusal}; {advice}")
        turn = self._round

        def told(error: KafkaError | None, _: object) -> None:
            if turn == self._round:
                self._waiting -= 1
                self._failure = self._failure or error

        producer = self._producer = self._producer or Producer(self._options)
        try:
            for row in range(len(messages)):
                self._waiting += 1
                _put(producer, partition.topic, partition.number, messages, row, told)
        except (KafkaException, BufferError) as error:
            self._give_up(f"append to {partition}", error)
        producer.poll(0)
        if self._failure is not None:
            self._give_up(f"append to {partition}", KafkaException(self._failure))

    def confirm(self, timeout_s: float) -> int:
        """As `ports.Appender.confirm`."""
        if self._producer is not None and self._waiting:
            deadline = time.monotonic() + timeout_s
            self._producer.poll(0)
            while self._waiting and self._failure is None and time.monotonic() < deadline:
                self._producer.poll(max(0.0, deadline - time.monotonic()))
        if self._failure is not None:
            self._give_up("append", KafkaException(self._failure))
        return self._waiting

    def _give_up(self, doing: str, error: Exception) -> NoReturn:
        self._round += 1
        self._waiting = 0
        self._failure = None
        if self._producer is not None:
            # Frees what is queued, so that a producer that nobody serves any more cannot send it later.
            self._producer.purge(in_queue=True, in_flight=True, blocking=False)
            self._producer = None
        self._heard.fatal = None
        raise AbortableError(f"{doing}: {reason(error)}; asking again from the committed offsets") from error

    def close(self) -> None:
        """As `ports.Appender.close`."""
        if self._producer is not None:
            if self._producer.flush(_CLOSE_S):
                self._producer.purge()
            self._producer = None


class ConfluentTransactor:
    """`ports.Transactor` on confluent-kafka, exactly once."""

    def __init__(
        self,
        settings: KafkaSettings,
        options: Mapping[str, Any],
        transactional_id: str,
        limits: Limits,
    ) -> None:
        self._deadline_s = settings.request_timeout_ms / 1000
        self._limits = limits
        self._heartbeats_s = settings.session_timeout_ms / 2000
        self._fenced: Callable[[], bool] | None = None
        self._name = f"transaction {transactional_id}"
        self._open = False
        self._dead = False
        self._failure: KafkaError | None = None
        own = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": settings.transaction_timeout_ms,
            # librdkafka demands that a message's time to live is no longer than its transaction's.
            "delivery.timeout.ms": settings.transaction_timeout_ms,
            "socket.timeout.ms": min(options["socket.timeout.ms"], settings.transaction_timeout_ms),
            "linger.ms": 5,
        }
        self._producer = Producer({**_options(settings, options, Heard()), **own})
        try:
            self._producer.init_transactions(self._deadline_s)
        except KafkaException as error:
            inner = cause(error)
            if inner is not None and inner.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
                raise FatalError(
                    f"{self._name}: kafka.transaction_timeout is above what the broker allows; "
                    "lower it, or raise its transaction.max.timeout.ms"
                ) from error
            said = translated(error, f"{self._name}: start")
            raise said from error

    def begin(self) -> None:
        """As `ports.Transactor.begin`."""
        self._call("begin", self._producer.begin_transaction)
        self._failure = None
        self._open = True

    def unsendable(self, topic: str, messages: Messages) -> dict[int, str]:
        """As `ports.Transactor.unsendable`."""
        return self._limits.unsendable(topic, messages)

    def send(self, topic: str, partition: int | None, messages: Messages) -> None:
        """As `ports.Transactor.send`."""
        if not self._open:
            raise UsageError("send outside a transaction; call begin first")
        where = topic if partition is None else str(Partition(topic, partition))

        def send_all() -> None:
            for row in range(len(messages)):
                _put(self._producer, topic, partition, messages, row, self._told)
            self._producer.poll(0)

        self._call(f"send to {where}", send_all)

    def _told(self, error: KafkaError | None, _: object) -> None:
        self._failure = self._failure or error

    def send_offsets(self, offsets: Mapping[Partition, Committed], membership: Membership) -> None:
        """As `ports.Transactor.send_offsets`."""
        if not self._open:
            raise UsageError("send_offsets outside a transaction; call begin first")
        if membership.generation < 0:
            raise AbortableError(f"{self._name}: not a member of the group any more")
        member = cast(ConfluentMember, membership.handle)
        self._fenced = member.fenced
        held = _held(offsets)
        self._call(
            "offsets",
            lambda: self._producer.send_offsets_to_transaction(held, member.metadata, self._deadline_s),
        )

    def commit(self) -> None:
        """As `ports.Transactor.commit`."""
        if not self._open:
            raise UsageError("commit outside a transaction; call begin first")
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
        """As `ports.Transactor.abort`."""
        if not self._open:
            return
        self._alive()
        try:
            self._producer.abort_transaction(self._deadline_s)
        except KafkaException as error:
            self._dead = True
            displaced = is_fenced_producer(error) and taken(self._fenced, self._heartbeats_s)
            said = f"{self._name}: abort: {reason(error)}; new clients are needed"
            raise FatalError(said, fenced=displaced) from error
        self._open = False

    def close(self) -> None:
        """As `ports.Transactor.close`."""
        try:
            if self._open:
                self._open = False
                self._producer.abort_transaction(_CLOSE_S)
        except KafkaException:
            # Its broker is away or it is fenced; the next holder of the slot aborts for it.
            self._producer.purge()

    def _alive(self) -> None:
        if self._dead:
            raise FatalError(f"{self._name}: finished by an earlier error; new clients are needed")

    def _call(self, doing: str, call: Callable[[], object]) -> None:
        self._alive()
        try:
            call()
        except (KafkaException, BufferError) as error:
            said = translated(error, f"{self._name}: {doing}")
            if isinstance(said, FatalError):
                self._dead = True
                if is_fenced_producer(error):
                    said.fenced = taken(self._fenced, self._heartbeats_s)
            raise said from error


class ConfluentPlainTransactor:
    """`ports.Transactor` without transactions: what was sent stays sent, whatever becomes of the rest."""

    def __init__(self, settings: KafkaSettings, options: Mapping[str, Any], limits: Limits) -> None:
        self._options = {**_options(settings, options, Heard()), "linger.ms": 5}
        self._limits = limits
        self._timeout_s = settings.request_timeout_ms / 1000
        self._open = False
        self._failure: KafkaError | None = None
        self._offsets: list[tuple[list[Any], Membership]] = []
        self._producer = Producer(self._options)

    def begin(self) -> None:
        """As `ports.Transactor.begin`."""
        self._open = True

    def unsendable(self, topic: str, messages: Messages) -> dict[int, str]:
        """As `ports.Transactor.unsendable`."""
        return self._limits.unsendable(topic, messages)

    def send(self, topic: str, partition: int | None, messages: Messages) -> None:
        """As `ports.Transactor.send`; goes out at once."""
        if not self._open:
            raise UsageError("send outside a transaction; call begin first")
        try:
            for row in range(len(messages)):
                _put(self._producer, topic, partition, messages, row, self._told)
            self._producer.poll(0)
        except (KafkaException, BufferError) as error:
            raise translated(error, f"send to {topic}") from error

    def _told(self, error: KafkaError | None, _: object) -> None:
        self._failure = self._failure or error

    def send_offsets(self, offsets: Mapping[Partition, Committed], membership: Membership) -> None:
        """As `ports.Transactor.send_offsets`; done by `commit`."""
        if not self._open:
            raise UsageError("send_offsets outside a transaction; call begin first")
        if membership.generation < 0:
            raise AbortableError("offsets: not a member of the group any more")
        self._offsets.append((_held(offsets), membership))

    def commit(self) -> None:
        """As `ports.Transactor.commit`: waits for every acknowledgement, then commits the offsets."""
        if not self._open:
            raise UsageError("commit outside a transaction; call begin first")
        if self._producer.flush(self._timeout_s):
            raise AbortableError(f"commit: not acknowledged within {self._timeout_s:g} s")
        try:
            if self._failure is not None:
                raise KafkaException(self._failure)
            for held, membership in self._offsets:
                member = cast(ConfluentMember, membership.handle)
                # The consumer commits as what it is now; that must be what it was when it read.
                if member.consumer.consumer_group_metadata() != member.metadata:
                    raise AbortableError("commit: the group has moved on since the messages were read")
                for part in member.consumer.commit(offsets=held, asynchronous=False):
                    if part.error is not None:
                        raise KafkaException(part.error)
        except KafkaException as error:
            raise translated(error, "commit") from error
        self._forget()

    def abort(self) -> None:
        """As `ports.Transactor.abort`; waiting messages are given up, sent ones stay."""
        if self._open and len(self._producer):
            self._producer.purge()
            self._producer.flush(_CLOSE_S)
        self._forget()

    def _forget(self) -> None:
        self._open = False
        self._failure = None
        self._offsets.clear()

    def close(self) -> None:
        """As `ports.Transactor.close`."""
        if self._producer.flush(_CLOSE_S):
            self._producer.purge()


def _held(offsets: Mapping[Partition, Committed]) -> list[Any]:
    return [
        TopicPartition(part.topic, part.number, committed.offset, committed.metadata)
        for part, committed in offsets.items()
    ]
