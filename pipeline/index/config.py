"""What an index needs to know beside the sieve's own configuration, and the names of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from twinsieve.pipeline.broker.records import Partition

MAX_BLOCKS = 32
MAX_STEP_BYTES = 32 << 20
MAX_STEP_S = 2.0
"""Far below the time-outs of group members, health checks and workers, and long enough for a large
transaction."""
INPUTS_S = 30.0
UNREAD_S = 600.0
"""Longer than a restart of the only process that reads a topic; the wait costs some copies."""


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """What the index needs to know beside the sieve's own configuration. Nothing has a default.

    scheme: hash of the fingerprint scheme; group, member: of the consumer
    max_blocks, max_step_bytes, max_step_s: blocks that are judged for one transaction, their bytes, and how
        long judging may have taken when another one is begun; one block at least
    check_s: an idle index makes sure this often that it was not displaced
    output: the output topic, which is committed beside every log offset; empty where nothing is emitted
    trim_log: delete the log behind the oldest snapshot (they are on shared storage)
    workers, seeders: groups that read input topics; what only the second one reads is out already
    inputs_s: look this often whether anybody reads the topics whose verdicts are not known to be emitted
    unread_s: give up a topic that none of the workers has been given for this time
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
    max_step_bytes: int
    max_step_s: float
    snapshot_every_s: float
    check_s: float
    trim_log: bool
    needs_snapshots: bool
    output: str
    workers: str
    seeders: str
    inputs_s: float
    unread_s: float


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
    """it follows recorded decisions, and is not a member of its group yet"""
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
