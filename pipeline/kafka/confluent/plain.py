"""`delivery: at-least-once` with confluent-kafka: no transactions, offsets committed after the messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException, Producer

from twinsieve.pipeline.broker.ports import AbortableError, Committed, Membership, Messages, Partition
from twinsieve.pipeline.kafka.confluent.membership import ConfluentMember
from twinsieve.pipeline.kafka.confluent.options import Heard, translated
from twinsieve.pipeline.kafka.confluent.producers import held_offsets, producer_options, put, shut
from twinsieve.pipeline.kafka.limits import Limits
from twinsieve.pipeline.kafka.transacting import Transacting
from twinsieve.pipeline.settings.model import KafkaSettings


class ConfluentPlainTransactor(Transacting):
    """`ports.Transactor` without transactions: what was sent stays sent, whatever becomes of the rest."""

    def __init__(self, settings: KafkaSettings, options: Mapping[str, Any], limits: Limits) -> None:
        super().__init__(limits)
        self._options = {**producer_options(settings, options, Heard()), "linger.ms": 5}
        self._timeout_s = settings.request_timeout_ms / 1000
        self._failure: KafkaError | None = None
        self._offsets: list[tuple[list[Any], Membership]] = []
        self._producer: Any = Producer(self._options)

    def begin(self) -> None:
        self._open = True

    def send(self, topic: str, partition: int | None, messages: Messages) -> None:
        """Goes out at once."""
        self._require_open("send")
        try:
            for row in range(len(messages)):
                put(self._producer, topic, partition, messages, row, self._told)
            self._producer.poll(0)
        except (KafkaException, BufferError) as error:
            raise translated(error, f"send to {topic}") from error

    def _told(self, error: KafkaError | None, _: object) -> None:
        self._failure = self._failure or error

    def send_offsets(self, offsets: Mapping[Partition, Committed], membership: Membership) -> None:
        """Done by `commit`."""
        self._require_open("send_offsets")
        self._require_member(membership)
        self._offsets.append((held_offsets(offsets), membership))

    def commit(self) -> None:
        """Waits for every acknowledgement, then commits the offsets."""
        self._require_open("commit")
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
        """Waiting messages are given up, sent ones stay."""
        if self._open and len(self._producer):
            # purge() returns before librdkafka's threads are done: they would discard later messages too.
            kept, self._producer = [self._producer], Producer(self._options)
            kept[0].purge()
            shut(kept)
        self._forget()

    def _forget(self) -> None:
        self._open = False
        self._failure = None
        self._offsets.clear()

    def close(self) -> None:
        self.closed = True
        if self._producer is not None:
            kept, self._producer = [self._producer], None
            shut(kept)
