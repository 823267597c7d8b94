"""Compute what settings cost: worst-case memory, the time that the windows cover, the size of the log."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from twinsieve.pipeline.operate.topic_plan import log_bytes_a_day, log_kept_ms, log_row_bytes, trims_log
from twinsieve.pipeline.pages.amounts import span
from twinsieve.pipeline.pieces.saving_cost import saving_bytes
from twinsieve.pipeline.settings.client_buffers import POLL_BYTES, fetched_bytes, polled_bytes, queue_bytes
from twinsieve.pipeline.settings.model import Settings, WindowSettings
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.sizing.kept_bytes import Texts
from twinsieve.pipeline.sizing.model import REPEATS, Estimate, Load, estimate
from twinsieve.pipeline.watch.drops import DROPS_BYTES
from twinsieve.pipeline.wire.columns import row_bytes
from twinsieve.pipeline.worker.asks import READING_FACTOR, ROW_BYTES
from twinsieve.pipeline.worker.config import MAX_ASKED_BYTES
from twinsieve.pipeline.worker.session import SPARE_PART
from twinsieve.stages.contract import DETAIL_LENGTH, Verdicts, largest_window
from twinsieve.stages.judge.batch_sieve import mapped_bytes, worst_case_bytes

_HOUR_S = 3600
_TEXTS = Texts()


@dataclass(frozen=True, slots=True)
class Cover:
    """How far back a window reaches at some rate, if every message is kept (the worst case).

    hours: time that the window covers; asked_hours: its age limit in the settings, None if it has none
    by: the limit that is reached first, `messages` or `age`
    max_messages: the largest value that the setting `messages` may have, None if there is no maximum
    """

    name: str
    hours: float
    asked_hours: float | None
    by: str
    max_messages: int | None = None

    def shortfall(self, rate: float) -> str | None:
        """One line with advice if the window covers less time than its age limit, else None.

        >>> print(Cover("near", 0.8, 24.0, "messages", 16_000_000).shortfall(1250.0))
        near: 48 min of 24 h; raise near.window.messages (24 h hold 108,000,000, at most 16,000,000: 3.56 h)
        """
        if self.by != "messages" or self.asked_hours is None:
            return None
        key = f"{self.name}.window.messages"
        age, needed = span(self.asked_hours * _HOUR_S), math.ceil(self.asked_hours * _HOUR_S * rate)
        line = f"{self.name}: {span(self.hours * _HOUR_S)} of {age}; raise {key} ({age} hold {needed:,}"
        if self.max_messages is not None and needed > self.max_messages:
            reach = span(self.max_messages / rate)
            return f"{line}, at most {self.max_messages:,}: {reach})"
        return f"{line})"


@dataclass(frozen=True, slots=True)
class Cost:
    """What settings cost.

    memory: worst-case bytes of the sieve, by part; files: of the files of its sealed segments
    estimates: what the sieve costs with usual texts, for each share of repeats in `sizing.model.REPEATS`;
        empty where there is no model (`is_modelled`)
    covers: the time that each window covers
    log_row_bytes, log_bytes_a_day: bytes in the log on Kafka, per message and per day
    log_kept_ms: retention that `topics create` gives the log; None: forever
    log_trimmed: whether the index deletes the part of the log that its snapshots cover
    """

    memory: dict[str, int]
    files: int
    estimates: list[Estimate]
    covers: list[Cover]
    log_row_bytes: int
    log_bytes_a_day: int
    log_kept_ms: int | None
    log_trimmed: bool

    @property
    def log_said(self) -> str:
        """One line about the disk space of the log."""
        a_day = f"{self.log_bytes_a_day / 1e9:,.1f} GB a day, at {self.log_row_bytes} bytes a message"
        if self.log_trimmed:
            return f"{a_day}; the index deletes it behind its snapshots"
        if self.log_kept_ms is None:
            return f"{a_day}; kept forever, because a window has no age and snapshots are not shared"
        days = self.log_kept_ms / 1000 / 24 / _HOUR_S
        gigabytes = self.log_bytes_a_day * days / 1e9
        return f"{a_day}; kept for {span(self.log_kept_ms / 1000)}: {gigabytes:,.1f} GB on each replica"

    @property
    def total_bytes(self) -> int:
        """Sum of the memory of all parts."""
        return sum(self.memory.values())


def is_modelled(settings: Settings) -> bool:
    """Whether the cost model knows these settings: texts that are looked up in an index."""
    return settings.near.method == "text" and settings.near.candidates == "index"


def load_of(settings: Settings, rate: float, texts: Texts, repeats: float) -> Load:
    """The load of the cost model. rate: messages a second; repeats: share of them that is dropped"""
    state = settings.state
    return Load(rate, repeats, texts, state.memory, max(1, state.snapshot_every_ms) / 1000, state.keep)


def cost_of(settings: Settings, rate: float, texts: Texts = _TEXTS) -> Cost:
    """What these settings cost at `rate` messages a second. raises: UsageError if no sieve can have them"""
    windows = [
        (name, stage.window)
        for name, stage in (("exact", settings.exact), ("near", settings.near))
        if stage.method != "none"
    ]
    limits = {"near": largest_window(settings.near.method)}
    config = sieve_config(settings, "")
    return Cost(
        memory=worst_case_bytes(config),
        files=mapped_bytes(config),
        estimates=[
            estimate(config, load_of(settings, rate, texts, repeats))
            for repeats in REPEATS
            if is_modelled(settings)
        ],
        covers=[_cover(name, window, rate, limits.get(name)) for name, window in windows],
        log_row_bytes=log_row_bytes(settings),
        log_bytes_a_day=log_bytes_a_day(settings, rate),
        log_kept_ms=log_kept_ms(settings),
        log_trimmed=trims_log(settings),
    )


def _cover(name: str, window: WindowSettings, rate: float, max_messages: int | None) -> Cover:
    by_messages = window.messages / rate / _HOUR_S
    age_hours = None if window.age_ms is None else window.age_ms / 1000 / _HOUR_S
    if age_hours is None or by_messages < age_hours:
        return Cover(name, by_messages, age_hours, "messages", max_messages)
    return Cover(name, age_hours, age_hours, "age", max_messages)


FORGOTTEN_BYTES = 24
"""Bytes for each message that was kept but then never emitted: its digest is remembered for the length of the
exact window, so that the next copy of the message is kept (`stages/exact/forgotten.py`)."""


@dataclass(frozen=True, slots=True)
class Held:
    """Worst-case memory of the roles of one process, in bytes by part.

    sieve: the index's sieve
    waiting: original messages that wait for answers of the index
    reading: working memory while texts are read, for the characters that need the most
    open_verdicts: verdicts whose messages are not yet known to be emitted
    forgotten: digests of kept messages that are never emitted, if this happens once to all open verdicts
    saving: records of kept messages that wait to be written, and copies of what is small of the sieve
    worker_fetched, index_fetched: records that the clients of a role have fetched
    producer: queue of one producer
    drops: the latest drops, with their texts, for the status pages
    """

    sieve: int
    waiting: int
    reading: int
    open_verdicts: int
    forgotten: int
    saving: int
    worker_fetched: int
    index_fetched: int
    producer: int
    drops: int

    @property
    def worker(self) -> int:
        """Memory of a worker. It has two producers: one for blocks, one for transactions."""
        return self.waiting + self.reading + self.worker_fetched + 2 * self.producer + self.drops

    @property
    def writing(self) -> int:
        """Extra memory while a snapshot is written: the sieve itself is not copied."""
        return self.saving + self.open_verdicts + self.forgotten

    @property
    def index(self) -> int:
        """Memory of an index while it writes a snapshot; a restore takes less."""
        kept = self.sieve + self.open_verdicts + self.forgotten
        return kept + self.writing + self.index_fetched + self.producer

    @property
    def process(self) -> int:
        """Memory of a process that has both roles."""
        return self.worker + self.index


def held_by(settings: Settings, partitions: int) -> Held:
    """Worst-case memory of one process that serves this number of input partitions. raises: UsageError

    A worker pauses partitions when the waiting messages of all of them reach `kafka.pending_bytes`. One poll
    may exceed this limit. Partitions without waiting messages still read one message at a time, up to a
    quarter (SPARE_PART) above the limit. The index keeps a verdict until it knows that the message was
    emitted, so it may keep one for each message that waits in any worker.
    """
    kafka = settings.kafka
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
        # One reader for the log, and one for log and decisions together, which follows another index.
        index_fetched=fetched_bytes(kafka, 1, own=True) + fetched_bytes(kafka, 2, own=True) + 2 * POLL_BYTES,
        producer=queue_bytes(kafka),
        drops=DROPS_BYTES if settings.http.texts else 0,
    )


def verdict_bytes(*, details: bool) -> int:
    """Bytes of one open verdict with its offset and its tag.

    details: whether the verdict also has the differing words, at their greatest length
    """
    verdict = Verdicts.blank(1)
    if details:
        verdict.details, verdict.detail_rows[0] = np.zeros((1, 2, DETAIL_LENGTH), np.uint32), 0
    return 8 + 8 + int(row_bytes(verdict)[0])
