"""`delivery: at-least-once` with kafka-python: no transactions, offsets committed after the messages."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, cast

from kafka import TopicPartition, errors
from kafka.structs import OffsetAndMetadata

from twinsieve.pipeline.broker.ports import Committed, Membership, Messages, Partition
from twinsieve.pipeline.kafka.kafka_python.group_consumer import PythonMember
from twinsieve.pipeline.kafka.kafka_python.options import translated
from twinsieve.pipeline.kafka.kafka_python.producers import cut_off, make_producer, shut
from twinsieve.pipeline.kafka.limits import Limits
from twinsieve.pipeline.kafka.transacting import Transacting
from twinsieve.pipeline.settings.model import KafkaSettings


class PythonPlainTransactor(Transacting):
    """`ports.Transactor` without transactions: what was sent stays sent, whatever becomes of the rest.

    A crash between the acknowledgements and the offset commit sends a part again.
    """

    def __init__(self, settings: KafkaSettings, options: Mapping[str, Any], limits: Limits) -> None:
        super().__init__(limits)
        self._settings = settings
        self._options = options
        self._timeout_s = settings.request_timeout_ms / 1000
        self._futures: list[Any] = []
        self._offsets: list[tuple[dict[TopicPartition, OffsetAndMetadata], Membership]] = []
        self._producer = make_producer(settings, options, linger_ms=5)

    def begin(self) -> None:
        self._open = True

    def send(self, topic: str, partition: int | None, messages: Messages) -> None:
        """Goes out at once."""
        self._require_open("send")
        rows = zip(messages.keys, messages.values, messages.headers, messages.timestamps_ms, strict=True)
        try:
            for key, value, headers, stamp in rows:
                self._futures.append(
                    self._producer.send(
                        topic, value, key, list(headers), partition, None if stamp < 0 else stamp
                    )
                )
        except (errors.KafkaError, ValueError, TypeError) as error:
            raise translated(error, f"send to {topic}") from error

    def send_offsets(self, offsets: Mapping[Partition, Committed], membership: Membership) -> None:
        """Done by `commit`."""
        self._require_open("send_offsets")
        self._require_member(membership)
        held = {
            TopicPartition(*partition): OffsetAndMetadata(committed.offset, committed.metadata, -1)
            for partition, committed in offsets.items()
        }
        self._offsets.append((held, membership))

    def commit(self) -> None:
        """Waits for every acknowledgement, then commits the offsets."""
        self._require_open("commit")
        deadline = time.monotonic() + self._timeout_s
        try:
            self._producer.flush(self._timeout_s)
            for future in self._futures:
                if future.failed():
                    raise future.exception
            for held, membership in self._offsets:
                member = cast(PythonMember, membership.handle)
                # The consumer commits as what it is now; that must be what it was when it read.
                now, then = member.consumer.group_metadata(), member.metadata
                if (now.generation_id, now.member_id) != (then.generation_id, then.member_id):
                    raise errors.CommitFailedError()
                member.consumer.commit(held, timeout_ms=int(1000 * max(1.0, deadline - time.monotonic())))
        except errors.KafkaError as error:
            raise translated(error, "commit") from error
        self._forget()

    def abort(self) -> None:
        """Waiting messages are given up, sent ones stay."""
        if self._open and any(not future.is_done for future in self._futures):
            cut_off(self._producer)
            self._producer = make_producer(self._settings, self._options, linger_ms=5)
        self._forget()

    def _forget(self) -> None:
        self._open = False
        self._futures.clear()
        self._offsets.clear()

    def close(self) -> None:
        self.closed = True
        shut(self._producer)
