"""What a worker needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twinsieve.pipeline.ports import Partition
from twinsieve.pipeline.worker_emit import EmitConfig


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker needs to know.

    scheme: hash of the fingerprint scheme; group, member: of the input consumer
    most_pending, most_pending_bytes: rows of one partition, and bytes of their values, that wait for answers
        before it is paused
    most_emitted, most_emitted_bytes: rows of one transaction, and bytes of their originals, give or take one
        block of each partition: after a stall all that waited is answered at once, and a transaction that
        holds it all would outlast `kafka.transaction_timeout` again and again
    answer_s: without an answer for so long a new session begins; doubled each time, up to a minute
    ask_again_s: while answers are awaited, input is looked for this often; see `Pace`
    report_s: an idle partition reports after so long; check_s: an idle worker makes sure so often that it was
        not displaced, and that its topics are still the same ones
    """

    scheme: bytes
    topics: tuple[str, ...]
    log: Partition
    verdicts: str
    verdict_partitions: int
    group: str
    transactional_id: str
    emit: EmitConfig
    member: str | None = None
    program: str = ""
    poll_messages: int = 5_000
    block_bytes: int = 900 << 10
    most_pending: int = 50_000
    most_pending_bytes: int = 128 << 20
    most_emitted: int = 20_000
    most_emitted_bytes: int = 32 << 20
    answer_s: float = 10.0
    ask_again_s: float = 0.02
    report_s: float = 1.0
    check_s: float = 5.0
    start: Literal["earliest", "latest"] = "earliest"
    trimmed: Literal["stop", "continue"] = "stop"
