"""Configuration of an index (the sieve has its own), and the names of its steps and phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from threading import Event

from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.ends import JudgedUnder

MAX_BLOCKS = 1_024
"""Limit for the blocks of one transaction. Few partitions send few large blocks, which `MAX_STEP_BYTES`
limits; hundreds of partitions send many small ones, and a transaction for hundreds of these takes little
longer than one for a single block."""
MAX_STEP_BYTES = 32 << 20
TOGETHER_ROWS = 8_192
"""Greatest number of rows after which collected blocks are judged, or their verdicts applied, in one call of
the sieve. A call costs as much as some hundred rows, and at low rates a block has only a few."""
MAX_STEP_S = 2.0
"""Limit for the seconds of judging in one step: far below the time-outs of group members, health checks and
workers, and long enough for a large transaction."""
JOIN_PATIENCES = 3
"""`IndexConfig.join_s` is this number times `near.patience`."""
INPUTS_S = 30.0
UNREAD_S = 600.0
"""A topic is given up if no worker reads it for this time. The time is longer than a restart of the only
process that reads the topic. Until the topic is given up, its kept messages that are not emitted remain
leaders, so copies of them are dropped."""


@dataclass(frozen=True, slots=True)
class AnswersConfig:
    """How an index uses what shards answer.

    topic: the topic of their answers
    patience_s: a block waits this long at most for a segment, and only if somebody has answered for that
        segment within this time
    """

    topic: str
    patience_s: float


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """Configuration of an index; the sieve has its own. No field has a default.

    scheme: hash of the fingerprint scheme; group, member: consumer group and member name for the log
    max_blocks, max_step_bytes, max_step_s: limits of one step, which is one transaction: number of blocks,
        their bytes, and the time after which no further block is judged. At least one block is judged
    snapshot_every_s: a snapshot is due when the blocks that are in no snapshot are this old
    check_s: an idle index checks once in this time that no other process has taken its place
    output: the output topic, which is committed with every log offset; empty if nothing is emitted
    under: the settings of this process, which are committed once it has judged under them
    has_text: set once this process has found a text where its `input` settings say. Only then it commits
        `under.reading`: the blocks that it judges may come from processes with other settings
    trim_log: delete the part of the log that the oldest snapshot contains (if snapshots are on shared
        storage)
    workers, seeders: consumer groups of the workers and of `seed`. Messages that only `seed` reads are in the
        output already
    redrivers: beginning of the names of the consumer groups of `redrive`; a reason follows
    inputs_s: once in this time, check that workers still read the topics with verdicts that are not known to
        be emitted
    unread_s: give up a topic if no worker was assigned any of it for this time
    needs_snapshots: stop if part of the log was deleted because snapshots contain it, and none can be read
    join_s: an index that has come no closer for this time joins its group although it is not warm (`Joining`)
    answers: how it uses what shards answer; None: it looks everything up itself
    memory: `state.memory`, 0 for none
    spare_bytes: how many bytes more this process may take; None if unknown
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
    under: JudgedUnder
    has_text: Event
    workers: str
    seeders: str
    redrivers: str
    inputs_s: float
    unread_s: float
    join_s: float
    answers: AnswersConfig | None
    memory: int
    spare_bytes: Callable[[], int | None]


class IndexStep(StrEnum):
    """Names of the steps of an index, in their order. Right after each step, the index calls its hook
    (`broker.ports.Hook`) with the name."""

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
    """Phases of an index; docs/DESIGN.md shows the transitions."""

    RESTORING = "restoring"
    """it applies recorded decisions, and is no member of its group: not yet, or because its disk is full"""
    STANDBY = "standby"
    """a group member that was not assigned the log: it applies the decisions of the index that judges"""
    CATCHING_UP = "catching_up"
    """the group has assigned it the log; it applies the decisions recorded before, then judges"""
    LIVE = "live"
    """it judges"""


INDEX_WAYS: dict[IndexPhase, set[IndexPhase]] = {
    IndexPhase.RESTORING: {IndexPhase.STANDBY, IndexPhase.CATCHING_UP},
    IndexPhase.STANDBY: {IndexPhase.CATCHING_UP, IndexPhase.RESTORING},
    IndexPhase.CATCHING_UP: {IndexPhase.STANDBY, IndexPhase.LIVE, IndexPhase.RESTORING},
    IndexPhase.LIVE: {IndexPhase.STANDBY, IndexPhase.CATCHING_UP, IndexPhase.RESTORING},
}
