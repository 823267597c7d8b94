"""What settings cost: memory at worst, the time that windows cover, the size of the log."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.settings import Settings, WindowSettings
from pipeline.settings_stages import sieve_config
from stages.sieve import worst_case_bytes

LOG_ROW_BYTES = 350
"""A message in the fingerprint log, compressed, with text and offsets: the mean of real posts, rounded up."""

_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Cover:
    """How far back a window reaches at some rate, if every message is kept (the worst case).

    hours: what it really covers; asked_hours: its age limit, None without one
    by: what ends it, `messages` or `age`
    """

    name: str
    hours: float
    asked_hours: float | None
    by: str


@dataclass(frozen=True, slots=True)
class Cost:
    """Memory by part in bytes at worst; windows; bytes a day in the fingerprint log on Kafka."""

    memory: dict[str, int]
    covers: list[Cover]
    log_bytes_a_day: int

    @property
    def total_bytes(self) -> int:
        """All parts of the memory."""
        return sum(self.memory.values())


def cost_of(settings: Settings, rate: float) -> Cost:
    """What these settings cost at `rate` messages a second. raises: UsageError if they cannot be kept"""
    windows = [
        (name, stage.window)
        for name, stage in (("exact", settings.exact), ("near", settings.near))
        if stage.method != "none"
    ]
    return Cost(
        memory=worst_case_bytes(sieve_config(settings, "")),
        covers=[_cover(name, window, rate) for name, window in windows],
        log_bytes_a_day=round(rate * 24 * _HOUR_S * LOG_ROW_BYTES),
    )


def _cover(name: str, window: WindowSettings, rate: float) -> Cover:
    by_messages = window.messages / rate / _HOUR_S
    asked = None if window.age_ms is None else window.age_ms / 1000 / _HOUR_S
    if asked is None or by_messages < asked:
        return Cover(name, by_messages, asked, "messages")
    return Cover(name, asked, asked, "age")
