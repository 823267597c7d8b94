"""Configuration of a shard, and the names of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from twinsieve.pipeline.broker.records import Partition

MOST_BYTES_AHEAD = 64 << 20
"""A shard is at most this many bytes of answers ahead of what the index has committed."""
MOST_RECORD_BYTES = 512 << 10
"""Limit for a record of answers; a topic may set a lower one."""


@dataclass(frozen=True, slots=True)
class ShardConfig:
    """Configuration of a shard. No field has a default.

    scheme: hash of the fingerprint scheme; log: the partition with the blocks; answers: topic of the answers
    group, member: consumer group of the shards with this question, and member name
    index: consumer group whose committed offset says what is judged
    replicas: how many members answer for a segment
    patience_s: how long the index waits for an answer
    grace_s: how long a shard goes on without being first, and keeps a segment that no snapshot names
    check_s: time between two checks that the topics are still the same ones
    snapshot_every_s: how often the index writes a snapshot
    """

    scheme: bytes
    log: Partition
    answers: str
    group: str
    member: str
    index: str
    replicas: int
    patience_s: float
    grace_s: float
    check_s: float
    snapshot_every_s: float


class ShardStep(StrEnum):
    """Names of the steps of a shard, in their order. Right after each step, the shard calls its hook
    (`broker.ports.Hook`) with the name."""

    MADE = "shard.made"
    ASKED = "shard.asked"
    POLLED = "shard.polled"
    WRITTEN = "shard.written"


class Problem(StrEnum):
    """Why something is not done, by kind; the label of a count."""

    STORE = "store"
    """the store does not answer, or a file in it cannot be read"""
    MANIFEST = "manifest"
    """a snapshot cannot be used: damaged, of another log or scheme, or not signed"""
    SEGMENT = "segment"
    """a file of a segment cannot be used: missing, cut, damaged, foreign or not signed"""
    SPACE = "space"
    """no room for a copy on the disk, or for a segment in memory"""
    BLOCK = "block"
    """a block of the log cannot be read, and is passed over"""
    ANSWER = "answer"
    """an answer of another member cannot be read"""
