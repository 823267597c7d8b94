"""Worst-case memory of one process on Kafka, by part, from its settings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from twinsieve.pipeline.index.config import MAX_STEP_BYTES
from twinsieve.pipeline.index.segment_answers import MOST_BYTES
from twinsieve.pipeline.saved.journal import RECORD_MESSAGES
from twinsieve.pipeline.saved.patience import WAITING
from twinsieve.pipeline.saved.piece_bytes import largest_piece_bytes
from twinsieve.pipeline.settings.client_buffers import (
    POLL_BYTES,
    arena_bytes,
    fetched_bytes,
    polled_bytes,
    queue_bytes,
)
from twinsieve.pipeline.settings.model import KafkaSettings, Settings
from twinsieve.pipeline.settings.segment_bytes import hot_bytes, segment_messages, segment_parts
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.shards.config import MOST_BYTES_AHEAD
from twinsieve.pipeline.wire.column_bytes import row_bytes
from twinsieve.pipeline.worker.asks import READING_FACTOR
from twinsieve.pipeline.worker.config import MAX_ASKED_BYTES
from twinsieve.pipeline.worker.session import ROW_BYTES, SPARE_PART
from twinsieve.stages.contract import DETAIL_LENGTH, SieveConfig, Verdicts
from twinsieve.stages.exact.bloom import notes_limit
from twinsieve.stages.exact.bloom_sizing import bloom_sizing
from twinsieve.stages.exact.key_notes import NOTE_BYTES
from twinsieve.stages.exact.trie import tier_sizes
from twinsieve.stages.exact.trie_head import TrieHead
from twinsieve.stages.judge.batch_sieve import worst_case_bytes
from twinsieve.stages.judge.near_window import IN_MEMORY, chunk_rows, near_bytes, segment_count

FORGOTTEN_BYTES = 24
"""Bytes for each message that was kept but then never emitted: its digest is remembered for the length of the
exact window, so that the next copy of the message is kept (`stages/exact/forgotten.py`)."""

PYTHON_BYTES = 400 << 20
"""What a process takes beside `Held`: Python, the packages and compiled kernels, 147 MiB before the first
message (`python -m bench.kafka_footprint`); the rest is for the allocator."""


@dataclass(frozen=True, slots=True)
class Held:
    """Worst-case memory of the roles of one process, in bytes by part.

    sieve: the index's sieve
    waiting: original messages that wait for answers of the index
    reading: working memory while texts are read, for the characters that need the most
    open_verdicts: verdicts whose messages are not yet known to be emitted
    forgotten: digests of kept messages that are never emitted, if this happens once to all open verdicts
    saving: records of kept messages that wait to be written, and copies of what is small of the sieve
    held_blocks: blocks that the index has polled and not judged
    answers: those of shards that are ahead of the index; 0 without shards
    segments: what a shard has in memory of its segments, up to `state.memory`
    taking_over: what a shard needs to copy and check one segment more
    answers_made: answers that a shard has not written
    worker_fetched, index_fetched, shard_fetched: records that the clients of a role have fetched
    arenas: memory of polled messages that a process keeps for the next ones
    producer: queue of one producer
    unwritten: what the near window takes more while none of its segments can be written
    """

    sieve: int
    waiting: int
    reading: int
    open_verdicts: int
    forgotten: int
    saving: int
    held_blocks: int
    answers: int
    segments: int
    taking_over: int
    answers_made: int
    worker_fetched: int
    index_fetched: int
    shard_fetched: int
    arenas: int
    producer: int
    unwritten: int

    @property
    def worker(self) -> int:
        """Memory of a worker. It has two producers: one for blocks, one for transactions."""
        return self.waiting + self.reading + self.worker_fetched + self.arenas + 2 * self.producer

    @property
    def writing(self) -> int:
        """Extra memory while a snapshot is written: the sieve itself is not copied."""
        return self.saving + self.open_verdicts + self.forgotten

    @property
    def index(self) -> int:
        """Memory of an index while it writes a snapshot; a restore takes less, unless the snapshot has an
        image."""
        kept = self.sieve + self.open_verdicts + self.forgotten
        polled = self.held_blocks + self.answers + self.index_fetched + self.arenas
        return kept + self.writing + polled + self.producer

    @property
    def shard(self) -> int:
        """Memory of a shard."""
        answering = self.segments + self.taking_over + self.answers_made
        return answering + self.shard_fetched + self.arenas + self.producer

    @property
    def process(self) -> int:
        """Memory of a process that has both roles."""
        return self.worker + self.index

    @property
    def limit(self) -> int:
        """The limit of memory to give to a process that has both roles."""
        return self.process + PYTHON_BYTES

    @property
    def full_disk_limit(self) -> int:
        """The limit that such a process needs if its disk takes no segment, and judging is not to pause."""
        return self.limit + self.unwritten

    @property
    def shard_limit(self) -> int:
        """The limit of memory to give to a process that is a shard alone."""
        return self.shard + PYTHON_BYTES

    def of(self, roles: Collection[str]) -> int:
        """Memory of a process that has these roles."""
        each = {"worker": self.worker, "index": self.index, "shard": self.shard}
        return sum(each[role] for role in roles)


def held_by(settings: Settings, partitions: int) -> Held:
    """Worst-case memory of one process that serves this number of input partitions. raises: UsageError

    A worker pauses partitions when the waiting messages of all of them reach `kafka.pending_bytes`. One poll
    may exceed this limit. Partitions without waiting messages still read one message at a time, up to a
    quarter (SPARE_PART) above the limit. The index keeps a verdict until it knows that the message was
    emitted, so it may keep one for each message that waits in any worker. A shard is counted, and answers for
    the index, if the settings have shards.
    """
    kafka, shares = settings.kafka, settings.near.answers == "shards"
    rows = kafka.pending_messages + kafka.poll_messages
    answers, polled = settings.topics.verdict_partitions, polled_bytes(kafka)
    sieve = sieve_config(settings, "")
    return Held(
        sieve=sum(worst_case_bytes(sieve).values()),
        saving=saving_bytes(sieve),
        waiting=kafka.pending_bytes
        + kafka.pending_bytes // SPARE_PART
        + polled
        + kafka.poll_messages * ROW_BYTES,
        reading=READING_FACTOR * max(MAX_ASKED_BYTES, settings.input.max_bytes),
        open_verdicts=partitions * rows * verdict_bytes(details=settings.output.kept_apart_header),
        forgotten=0 if settings.exact.method == "none" else partitions * rows * FORGOTTEN_BYTES,
        worker_fetched=fetched_bytes(kafka, partitions)
        + fetched_bytes(kafka, answers, own=True)
        + POLL_BYTES,
        # The log is polled until they have this number of bytes; a poll more is counted below.
        held_blocks=MAX_STEP_BYTES // 2,
        answers=MOST_BYTES if shares else 0,
        segments=_in_memory(sieve) if shares else 0,
        taking_over=taking_over_bytes(segment_messages(sieve)) if shares else 0,
        answers_made=MOST_BYTES_AHEAD if shares else 0,
        # One reader for the log, one for log and decisions together, which follows another index, and one for
        # answers of shards.
        index_fetched=_read_bytes(kafka, 1)
        + _read_bytes(kafka, 2)
        + (_read_bytes(kafka, answers) if shares else 0),
        # Of the log, and of the answers of its successors.
        shard_fetched=_read_bytes(kafka, 1 + answers) if shares else 0,
        arenas=arena_bytes(kafka),
        producer=queue_bytes(kafka),
        unwritten=unwritten_bytes(sieve),
    )


def _read_bytes(kafka: KafkaSettings, partitions: int) -> int:
    """Bytes that a reader of internal topics has fetched and polled."""
    return fetched_bytes(kafka, partitions, own=True) + POLL_BYTES


def _in_memory(config: SieveConfig) -> int:
    """Bytes of the hot arrays that one shard has in memory, if it answers for all sealed segments."""
    hot = hot_bytes(segment_parts(config, None))
    return min(config.near.memory, (segment_count(config) - 1) * hot)


def unwritten_bytes(config: SieveConfig) -> int:
    """Bytes that a near window takes more at worst while none of its segments can be written.

    All of them are in memory then, or as many as find room in `state.memory`, for which judging pauses; one
    that is full stays beside the open one in any case. raises: UsageError
    """
    parts = worst_case_bytes(config)
    usual = sum(size for part, size in parts.items() if part not in ("bloom", "trie"))
    most = sum(near_bytes(config, segment_count(config)).values())
    if config.near.memory:
        most = min(most, max(config.near.memory, sum(near_bytes(config, IN_MEMORY).values())))
    return max(0, most - usual)


_COPY_BYTES = 2 * (16 << 20)
"""Two pieces of a file: the next one is read while the last one is held (`pipeline/saved/saved_files.py`)."""
_ID_BYTES = 3 * 8
"""For the id of a segment, of each message: its place, a column in that order, and the column's bytes."""


def taking_over_bytes(messages: int) -> int:
    """Bytes that a shard needs while it copies, checks and maps a segment of this number of kept messages,
    beside what it then holds of it (`python -m bench.segment_from_store`)."""
    return _COPY_BYTES + _ID_BYTES * messages


def verdict_bytes(*, details: bool) -> int:
    """Bytes of one open verdict with its offset and its tag.

    details: whether the verdict also has the differing words, at their greatest length
    """
    verdict = Verdicts.blank(1)
    if details:
        verdict.details, verdict.detail_rows[0] = np.zeros((1, 2, DETAIL_LENGTH), np.uint32), 0
    return 8 + 8 + int(row_bytes(verdict)[0])


_COPIES = 3
"""Of the record that is being written: its parts as one, their columns side by side, and compressed."""
_FRAME_BYTES = 2 << 21
"""A frame of a section, plain and compressed (`stages/judge/state.py`)."""


def saving_bytes(config: SieveConfig) -> int:
    """The most bytes that saving a sieve takes beside the sieve.

    These are the records that wait, one that gathers, copies of the one that is written, and a frame that is
    compressed; the noted keys of a Bloom filter and a copy of its newest generation, which is made where more
    keys came than are noted; or the head of the trie. raises: UsageError
    """
    rows = RECORD_MESSAGES + chunk_rows(config)
    records = (WAITING + 1 + _COPIES) * rows * largest_piece_bytes(config)
    small = 0
    if config.exact.method == "bloom":
        sizing = bloom_sizing(config.exact.window, config.exact.error_rate)
        small = sizing.stride + notes_limit(sizing) * NOTE_BYTES
    if config.exact.method == "trie":
        small = TrieHead.bytes_for(tier_sizes(config.exact.window).head)
    return records + small + _FRAME_BYTES
