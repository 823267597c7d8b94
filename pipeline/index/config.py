"""What an index needs to know beside the sieve's own configuration, and the names of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from twinsieve.pipeline.broker.records import Partition

MAX_BLOCKS = 32


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """What the index needs to know beside the sieve's own configuration. Nothing has a default.

    scheme: hash of the fingerprint scheme; group, member: of the consumer; max_blocks: in one transaction
    check_s: an idle index makes sure this often that it was not displaced
    output: the output topic, which is committed beside every log offset; empty where nothing is emitted
    trim_log: delete the log behind the oldest snapshot (they are on shared storage)
    needs_snapshots: stop where the log was deleted behind snapshots and none of them can be read
    """

    scheme: bytes
    log: Partition
    decisions: Partition
    verdicts: str
    group: str
    transactional_id: str
    member: str | None
    max_blocks: int
    snapshot_every_s: float
    check_s: float
    trim_log: bool
    needs_snapshots: bool
    output: str


class IndexStep(StrEnum):
    """Where a hook is called, in order."""

    RESTORED = "index.restored"
    POLLED = "index.polled"
    JUDGED = "index.judged"
    BEGUN = "index.begun"
    DECIDED = "index.decided"
    ANSWERED = "index.answered"
    OFFSETS_SENT = "index.offsets_sent"
    COMMITTED = "index.committed"
    SNAPSHOT_WRITTEN = "index.snapshot_written"


class IndexPhase(StrEnum):
    """Where an index stands; docs/DESIGN.md draws the ways."""

    RESTORING = "restoring"
    """it follows recorded decisions, and is no member of its group yet"""
    STANDBY = "standby"
    """a member without the log: it follows the one that judges"""
    CATCHING_UP = "catching_up"
    """the log is its own; it follows what was decided before, then judges"""
    LIVE = "live"
    """it judges"""


INDEX_WAYS: dict[IndexPhase, set[IndexPhase]] = {
    IndexPhase.RESTORING: {IndexPhase.STANDBY, IndexPhase.CATCHING_UP},
    IndexPhase.STANDBY: {IndexPhase.CATCHING_UP},
    IndexPhase.CATCHING_UP: {IndexPhase.STANDBY, IndexPhase.LIVE},
    IndexPhase.LIVE: {IndexPhase.STANDBY, IndexPhase.CATCHING_UP},
}
