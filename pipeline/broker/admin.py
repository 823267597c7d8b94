"""The part of the seam that looks after topics and group offsets; messages pass by `ports.py`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from twinsieve.pipeline.broker.records import Committed, GroupMember, Partition

DEFAULT_MESSAGE_BYTES = 1_048_588
"""`max.message.bytes` of a topic that does not set it, as brokers come."""
ANY_MS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """What a broker says of a topic; `settings` are its effective configuration, as text.

    leaderless: numbers of its partitions that have no leader now: they cannot be read or written
    operations: what this user may do with the topic; empty where the broker does not answer that
    """

    name: str
    topic_id: bytes
    partitions: int
    replication: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    leaderless: frozenset[int] = frozenset()
    operations: frozenset[str] = frozenset()

    def number(self, key: str, default: int) -> int:
        """A setting that is a number; the default where the broker does not show it."""
        text = self.settings.get(key, "")
        return int(text) if text.lstrip("-").isdigit() else default

    @property
    def message_bytes(self) -> int:
        """The largest record batch that it takes, compressed."""
        return self.number("max.message.bytes", DEFAULT_MESSAGE_BYTES)

    def accepted_ms(self, side: Literal["before", "after"]) -> int:
        """How far a message's timestamp may lie before, or after, the broker's time."""
        if self.settings.get("message.timestamp.type") == "LogAppendTime":
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
    """Looks after topics and group offsets.

    raises: plain BrokerError; `retryable` says whether waiting helps
    """

    def topics(self, names: Collection[str], *, settings: bool = False) -> dict[str, TopicInfo | None]:
        """Each topic, None where it does not exist; with `settings` also its configuration.

        That is one more request. Called at start, at the start of every session (the topic id goes into the
        blocks), every few seconds for partitions without a leader, and by `topics check`.
        raises: BrokerError(retryable=False) naming the topic when describing it is not allowed.
        """

    def create_topic(self, topic: NewTopic) -> None:
        """Create and wait until it is known. Exists already: BrokerError(retryable=False)."""

    def delete_records(self, before: Mapping[Partition, int]) -> None:
        """Forget what lies below these offsets (the index trims its log behind old snapshots)."""

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """First offset still held of each."""

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """End offset of each (of everything, also of what is not committed yet)."""

    def log_bytes(self, topics: Collection[str]) -> dict[str, int]:
        """Bytes of each topic on disk, of one replica of each partition; without those that no broker tells.

        Kafka tells who may describe the cluster. Asks all brokers, and gives up early.
        """

    def offsets_at(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int]:
        """First offset whose timestamp is at or after the time; the end offset where there is none
        (`reset`)."""

    def group_offsets(self, group: str, *, stable: bool = True) -> dict[Partition, Committed]:
        """All committed offsets of a group; empty for an unknown one.

        stable: no answer while an open transaction is about to move one of them; else the offset before it
        raises: BrokerError(retryable=True) for want of a stable answer
        """

    def members(self, group: str) -> Mapping[str, GroupMember]:
        """A group's live members by their ids; empty for an unknown group."""

    def set_group_offsets(self, group: str, offsets: Mapping[Partition, Committed]) -> None:
        """Move a group's offsets; BrokerError(retryable=False) while it has live members (`reset`)."""

    def close(self) -> None:
        """Give up everything."""
