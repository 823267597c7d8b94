"""The administration client that the other Kafka clients of both libraries use."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.kafka.client import Client


class KafkaAdmin(Client, Admin):
    """`ports.Admin`, with further calls that the other clients of a process need."""

    @abstractmethod
    def require(self, topics: Collection[str], operations: Collection[str]) -> None:
        """Check that every topic exists and that these operations on it are allowed.

        Without this check a consumer of kafka-python would return nothing, forever and without an error, if
        a topic does not exist or reading it is not allowed.
        raises: BrokerError(retryable=False) if a topic is missing or an operation is not allowed
        """

    @abstractmethod
    def batch_end(self, partition: Partition, offset: int) -> int | None:
        """The offset after the batch that has this offset, without unpacking the batch; None if there is no
        such batch. raises: BrokerError"""

    @abstractmethod
    def remove_member(self, group: str, name: str, member_id: str) -> None:
        """Remove this static member from the group, unless another member id has the name by now."""
