"""The part of a consumer that is the same for both client libraries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection
from contextlib import suppress

from twinsieve.pipeline.broker.records import AbortableError, BrokerError, Partition
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.errors import ErrorRules


class PartitionConsumer(Client):
    """Base class of group consumers and readers.

    Beginning and end offsets come from an admin client. The calls of the consumers cannot be used: in one
    client library they ignore the isolation level, in the other they wait until their time limit if a topic
    is missing.
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
        # RuntimeError: the consumer was already closed, or it never connected and its network loop has ended.
        with suppress(*self._errors.raised, RuntimeError):
            self._end()

    @abstractmethod
    def _end(self) -> None: ...
