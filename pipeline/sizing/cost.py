"""Compute what settings cost: memory of the sieve at worst, time that the windows cover, size of the log."""

from __future__ import annotations

import math
from dataclasses import dataclass

from twinsieve.pipeline.basics.shown_amounts import span
from twinsieve.pipeline.operate.topic_plan import log_bytes_a_day, log_kept_ms, log_row_bytes, trims_log
from twinsieve.pipeline.settings.model import Settings, WindowSettings
from twinsieve.pipeline.settings.segment_bytes import Texts
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.sizing.estimate import REPEATS, Estimate, Load, estimate
from twinsieve.stages.contract import largest_window
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
    estimates: what the sieve costs with usual texts, for each share of repeats in `sizing.estimate.REPEATS`;
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
