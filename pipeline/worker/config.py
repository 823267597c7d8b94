"""Configuration of a worker, its fixed limits, and the names of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.worker.emit import EmitConfig

ASK_AGAIN_S = 0.05
"""Least seconds between two polls of the input while answers are pending; see `PollBackoff`. This value gave
the lowest latency in bench/kafka_latency.py. Shorter pauses are worse, because each poll with messages
causes two more transactions."""
CHECK_S = 5.0
COMMIT_AGAIN_S = 3600.0
"""An offset is committed again after this time. The record has no members, so Kafka forgets each of its
offsets by its own age (`offsets.retention.minutes`, 7 days by default), also while its worker runs."""
MAX_EMITTED = 20_000
MAX_EMITTED_BYTES = 32 << 20
MAX_ASKED_BYTES = 4 << 20
"""Limit for the originals of one block. They are read together, which needs a multiple of their memory. A
single larger message makes a block of its own. A usual poll fits into one block."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Configuration of a worker. No field has a default here: the settings have defaults, and the fixed
    limits are the constants above.

    scheme: hash of the fingerprint scheme; group, member: consumer group and member name for the input
    settings: the settings that its start blocks tell (`settings.common`); empty if they tell none
    max_pending: a partition is paused when this many of its rows wait for answers
    max_pending_bytes: memory for the waiting rows of all partitions; a partition is paused when it holds its
        share of that
    max_emitted: limit for the rows of one transaction; the last block may exceed it. After a stall the index
        answers everything at once, and one transaction for all of it would outlast
        `kafka.transaction_timeout` each time. MAX_EMITTED_BYTES limits the originals in the same way
    transaction_s: the broker aborts a transaction after this time
    answer_s: a session without an answer for this time is replaced; the time doubles with each session that
        gets no answer, up to ten minutes
    report_s: a partition that is idle for this time reports to the index how far it has emitted
    check_s: an idle worker checks once in this time that no other process has taken its place and that its
        topics are still the same ones
    """

    scheme: bytes
    settings: str
    topics: tuple[str, ...]
    log: Partition
    verdicts: str
    group: str
    transactional_id: str
    emit: EmitConfig
    member: str | None
    poll_messages: int
    block_bytes: int
    max_pending: int
    max_pending_bytes: int
    max_emitted: int
    transaction_s: float
    answer_s: float
    report_s: float
    check_s: float
    start: Literal["earliest", "latest"]
    trimmed: Literal["stop", "continue"]
    on_unreadable: Literal["hold", "skip"]

    @property
    def record(self) -> str:
        """The group that records what was emitted, see `mark.on_record`."""
        return Names.emitted(self.group)


class WorkerStep(StrEnum):
    """Names of the steps of a worker. Right after each step, the worker calls its hook
    (`broker.ports.Hook`) with the name."""

    POLLED = "worker.polled"
    OPENED = "worker.opened"
    FINGERPRINTED = "worker.fingerprinted"
    APPENDED = "worker.appended"
    ANSWERED = "worker.answered"
    BEGUN = "worker.begun"
    SENT = "worker.sent"
    OFFSETS_SENT = "worker.offsets_sent"
    COMMITTED = "worker.committed"
    REPORTED = "worker.reported"
