"""The part of the broker interface for topics and group offsets; `ports.py` is the part for messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from twinsieve.pipeline.broker.records import Committed, GroupMember, Partition

DEFAULT_MESSAGE_BYTES = 1_048_588
"""`max.message.bytes` of a topic that does not set it: the default of a broker."""
ANY_MS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A broker's description of a topic.

    partitions: how many it has; replication: its replication factor
    settings: its effective configuration, as text
    leaderless: numbers of the partitions that have no leader now, so that they cannot be read or written
    operations: what this user may do with the topic; empty if the broker does not answer that
    """

    name: str
    topic_id: bytes
    partitions: int
    replication: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    leaderless: frozenset[int] = frozenset()
    operations: frozenset[str] = frozenset()

    def number(self, key: str, default: int) -> int:
        """A setting that is a number; the default if the broker does not show it."""
        text = self.settings.get(key, "")
        return int(text) if text.lstrip("-").isdigit() else default

    @property
    def message_bytes(self) -> int:
        """Size of the largest record batch that the topic accepts, in bytes after compression."""
        return self.number("max.message.bytes", DEFAULT_MESSAGE_BYTES)

    @property
    def compacts(self) -> bool:
        """Whether its messages are compacted by key, so that it refuses messages without a key."""
        return "compact" in self.settings.get("cleanup.policy", "")

    @property
    def stamps(self) -> bool:
        """Whether its messages get the time at which the broker writes them, in place of their own."""
        return self.settings.get("message.timestamp.type") == "LogAppendTime"

    def accepted_ms(self, side: Literal["before", "after"]) -> int:
        """How many ms a message's timestamp may lie before, or after, the broker's time."""
        if self.stamps:
            return ANY_MS
        return self.number(f"message.timestamp.{side}.max.ms", ANY_MS)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; `settings` as in Kafka (`retention.ms`, `cleanup.policy`, …)."""

    name: str
    partitions: int
    replication: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)


class Admin(Protocol):
    """Reads and changes topics and group offsets.

    raises: BrokerError itself, no subclass; `retryable` says whether waiting helps
    """

    def topics(self, names: Collection[str], *, settings: bool = False) -> dict[str, TopicInfo | None]:
        """Description of each topic, None if it does not exist; with `settings` also its configuration, which
        takes one more request.

        Called at start, at the start of every session (the topic id goes into the blocks), every few seconds
        to find partitions without a leader, and by `topics check`.
        raises: BrokerError(retryable=False) naming the topic when describing it is not allowed.
        """

    def create_topic(self, topic: NewTopic) -> None:
        """Create a topic and wait until the broker knows it. raises: BrokerError(retryable=False) if it
        exists already"""

    def delete_records(self, before: Mapping[Partition, int]) -> None:
        """Delete the records below these offsets (the index deletes what its oldest snapshot contains)."""

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Offset of the first record that each partition still has."""

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """End offset of each partition, after records of open transactions too."""

    def stable_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Last stable offset of each partition: a read-committed reader cannot read past it.

        Has a short time limit, because the caller asks often.
        """

    def log_bytes(self, topics: Collection[str]) -> dict[str, int]:
        """Bytes on disk of each topic, counting one replica of each partition; topics of which no broker
        reports the size are left out.

        Kafka reports sizes only to users who may describe the cluster. All brokers are asked, and only for a
        short time.
        """

    def offsets_at(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int]:
        """For each partition the first offset whose timestamp is at or after the time; the end offset if
        there is none (for `reset`)."""

    def group_offsets(
        self, group: str, partitions: Collection[Partition] | None = None, *, stable: bool = True
    ) -> dict[Partition, Committed]:
        """Committed offsets of a group, without partitions that have none; empty for an unknown group.

        partitions: None for all
        stable: raise while an open transaction is about to move one of the offsets; if False, return the
            offset before that transaction
        raises: BrokerError(retryable=True) if there is no stable answer
        """

    def groups(self, prefix: str) -> list[str]:
        """Names of the consumer groups that begin so and that this user may describe, sorted. Groups without
        members may be among them."""

    def members(self, group: str) -> Mapping[str, GroupMember]:
        """A group's live members by their ids; empty for an unknown group."""

    def set_group_offsets(self, group: str, offsets: Mapping[Partition, Committed]) -> None:
        """Move a group's offsets (for `reset`). raises: BrokerError(retryable=False) while the group has live
        members"""

    def close(self) -> None:
        """Close all connections."""
