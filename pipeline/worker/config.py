"""Configuration of a worker, its fixed limits, and the names of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.worker.emit import EmitConfig

ASK_AGAIN_S = 0.05
"""While answers are pending, input is polled this often; see `PollBackoff`. This value was the
best in bench/kafka_latency.py with both clients: each poll with messages causes two more transactions.
Confluent's median was 60 ms with 20 ms, 66 with 10, 48 with this."""
CHECK_S = 5.0
MAX_EMITTED = 20_000
MAX_EMITTED_BYTES = 32 << 20
MAX_ASKED_BYTES = 4 << 20
"""Limit for the originals of one block, which are read together. Reading needs a multiple of this memory. One
message may be this large by itself. A usual poll is one block."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker needs to know. Nothing has a default: settings have theirs, the rest stands above.

    scheme: hash of the fingerprint scheme; group, member: of the input consumer
    max_pending: rows of one partition that wait for answers before it is paused
    max_pending_bytes: of memory for waiting rows of all partitions; each may hold its share of it, and is
        paused then
    max_emitted: rows of one transaction, plus at most one block of each partition. After a stall the index
        answers everything at once; one transaction for all of it would outlast
        `kafka.transaction_timeout` each time. MAX_EMITTED_BYTES limits the originals in the same way
    transaction_s: after which the broker aborts a transaction
    answer_s: without an answer for this long a new session begins; doubled each time, up to ten minutes
    report_s: an idle partition reports once in this time; check_s: an idle worker checks once in this time
        that it was not displaced and that its topics are still the same ones
    """

    scheme: bytes
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


class WorkerStep(StrEnum):
    """Where a hook is called, in order."""

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
