"""Consumers: what both clients do the same way, whatever the library."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection
from contextlib import suppress

from twinsieve.pipeline.broker.records import AbortableError, BrokerError, Partition
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.errors import ErrorRules


class PartitionConsumer(Client):
    """What the consumer of a group and a reader share.

    An admin client answers the questions for offsets: the consumers' own calls have no isolation level, or
    ask for a missing topic again and again until their time is up.
    """

    def __init__(self, admin: Callable[[], KafkaAdmin], errors: ErrorRules) -> None:
        self._admin = admin
        self._errors = errors

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._query(lambda admin: admin.beginning_offsets(partitions))

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return self._query(lambda admin: admin.stable_offsets(partitions))

    def _query(self, question: Callable[[KafkaAdmin], dict[Partition, int]]) -> dict[Partition, int]:
        try:
            return question(self._admin())
        except BrokerError as error:
            raise AbortableError(str(error)) from error

    def close(self) -> None:
        self.closed = True
        # RuntimeError: closed before, or the network loop of a consumer that never connected is gone.
        with suppress(*self._errors.raised, RuntimeError):
            self._end()

    @abstractmethod
    def _end(self) -> None: ...
