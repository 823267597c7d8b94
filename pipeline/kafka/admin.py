"""Administration, as the clients of either library ask for it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.kafka.client import Client


class KafkaAdmin(Client, Admin):
    """`ports.Admin`, and what the other clients of a process need of it."""

    @abstractmethod
    def require(self, topics: Collection[str], operations: Collection[str]) -> None:
        """Check that every topic exists and that these operations on it are allowed.

        Without this check a consumer of kafka-python would return nothing, forever and without an error,
        both for a topic that does not exist and for one that may not be read.
        raises: BrokerError(retryable=False)
        """

    @abstractmethod
    def stable_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Last stable offset of each: where a read-committed reader waits. Gives up early."""

    @abstractmethod
    def remove_member(self, group: str, name: str, member_id: str) -> None:
        """The group forgets this static member, unless the name belongs to another id by now."""
