"""What a process on Kafka may hold at worst: sieve, waiting originals, open verdicts, clients' buffers."""

from __future__ import annotations

from dataclasses import dataclass

from twinsieve.pipeline.blocks_verdicts import blank_verdicts, verdict_columns
from twinsieve.pipeline.kafka.buffers import fetched_bytes, queue_bytes
from twinsieve.pipeline.settings import Settings
from twinsieve.pipeline.settings_stages import sieve_config
from twinsieve.pipeline.worker_asks import ROW_BYTES
from twinsieve.stages.contract import Kind
from twinsieve.stages.sieve import worst_case_bytes

WRITING_FACTOR = 2.6
"""Peak of a process that writes a snapshot, in sizes of its sieve: the sieve, its copy, and the largest
section of the copy compressed. Measured with content that no compression makes smaller
(bench/snapshot_memory.py)."""

RESTORING_FACTOR = 2.4
"""The same of one that restores: the arrays it reads, and those of an empty sieve that they replace. It holds
nothing else meanwhile, so this is less than writing takes."""


FORGOTTEN_BYTES = 24
"""Of a kept message that leads nobody any more, until the exact window has passed it."""


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes by part, of each role in a process that has `partitions` input partitions.

    waiting: originals that wait for their answers
    forgotten: digests of kept messages that never come out, where all open verdicts are passed over, once
    """

    partitions: int
    sieve: int
    waiting: int
    open_verdicts: int
    forgotten: int
    worker_fetched: int
    index_fetched: int
    producer: int

    @property
    def worker(self) -> int:
        """All of a worker: with two producers, of blocks and of transactions."""
        return self.waiting + self.worker_fetched + 2 * self.producer

    @property
    def writing(self) -> int:
        """What a snapshot that is being written takes beside what it is a snapshot of."""
        return round((WRITING_FACTOR - 1) * self.sieve) + self.open_verdicts + self.forgotten

    @property
    def index(self) -> int:
        """All of an index, while it writes a snapshot; a restore takes less."""
        kept = self.sieve + self.open_verdicts + self.forgotten
        return kept + self.writing + self.index_fetched + self.producer

    @property
    def process(self) -> int:
        """All of a process that has both roles."""
        return self.worker + self.index


def held_by(settings: Settings, partitions: int) -> Held:
    """What one process may hold that serves all of these input partitions. raises: UsageError

    A partition is paused once its originals reach its share of `kafka.pending_bytes`, or
    `kafka.pending_messages`. What a last poll brings beyond is counted as fetched, and as it came: a broker's
    batches are compressed; the objects around it are counted here. The index keeps a verdict until it knows
    that its message was emitted: as many as wait in all workers.
    """
    kafka = settings.kafka
    rows = kafka.pending_messages + kafka.poll_messages
    answers = settings.topics.verdict_partitions
    return Held(
        partitions,
        sieve=sum(worst_case_bytes(sieve_config(settings, "")).values()),
        waiting=kafka.pending_bytes + partitions * kafka.poll_messages * ROW_BYTES,
        open_verdicts=partitions * rows * verdict_bytes(),
        forgotten=0 if settings.exact.method == "none" else partitions * rows * FORGOTTEN_BYTES,
        # Input twice: what is fetched ahead, and the last poll of each partition.
        worker_fetched=2 * fetched_bytes(kafka, partitions) + fetched_bytes(kafka, answers),
        # The log, and the reader of log and decisions that follows.
        index_fetched=fetched_bytes(kafka, 1) + fetched_bytes(kafka, 2),
        producer=queue_bytes(kafka),
    )


def verdict_bytes() -> int:
    """Bytes of one open verdict, its offset and its tag."""
    return 8 + 8 + sum(column.nbytes for column in verdict_columns(blank_verdicts(1, Kind.UNIQUE)))
