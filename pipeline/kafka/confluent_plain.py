"""`delivery: at-least-once` with confluent-kafka: no transactions, offsets committed after the messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException, Producer

from pipeline.kafka.confluent_consumers import ConfluentMember
from pipeline.kafka.confluent_options import Heard, translated
from pipeline.kafka.confluent_producers import CLOSE_S, held_offsets, producer_options, put
from pipeline.kafka.limits import Limits
from pipeline.ports import AbortableError, Committed, Membership, Messages, Partition
from pipeline.settings import KafkaSettings
from stages.errors import UsageError


class ConfluentPlainTransactor:
    """`ports.Transactor` without transactions: what was sent stays sent, whatever becomes of the rest."""

    def __init__(self, settings: KafkaSettings, options: Mapping[str, Any], limits: Limits) -> None:
        self._options = {**producer_options(settings, options, Heard()), "linger.ms": 5}
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
                put(self._producer, topic, partition, messages, row, self._told)
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
        self._offsets.append((held_offsets(offsets), membership))

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
            self._producer.flush(CLOSE_S)
        self._forget()

    def _forget(self) -> None:
        self._open = False
        self._failure = None
        self._offsets.clear()

    def close(self) -> None:
        """As `ports.Transactor.close`."""
        if self._producer.flush(CLOSE_S):
            self._producer.purge()
