"""How fast counters grow, by readings of the last minutes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping

EVERY_S = 5.0
"""Time between two readings that are kept."""
PERIODS_S = (10.0, 60.0, 300.0)


class Rates:
    """Keeps a reading each five seconds, of the last five minutes.

    >>> rates = Rates()
    >>> for second, count in ((0, 0), (70, 300), (80, 500)):
    ...     rates.read(second, {"unique": count})
    >>> rates.per_s(80, {"unique": 500})["unique"]
    (20.0, 6.25, 6.25)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readings: deque[tuple[float, dict[str, float]]] = deque(
            maxlen=int(max(PERIODS_S) / EVERY_S) + 1
        )

    def due(self, now_s: float) -> bool:
        """Whether it is time for a reading."""
        with self._lock:
            return not self._readings or now_s - self._readings[-1][0] >= EVERY_S

    def read(self, now_s: float, counts: Mapping[str, float]) -> None:
        """Keep a reading, if it is time for one. now_s: monotonic time"""
        with self._lock:
            if not self._readings or now_s - self._readings[-1][0] >= EVERY_S:
                self._readings.append((now_s, dict(counts)))

    def per_s(self, now_s: float, counts: Mapping[str, float]) -> dict[str, tuple[float | None, ...]]:
        """By name the growth a second over each of PERIODS_S, or since the first reading if that is later.
        None: there is no earlier reading."""
        with self._lock:
            readings = list(self._readings)
        rates: dict[str, tuple[float | None, ...]] = {}
        starts = [_start(readings, now_s, period_s) for period_s in PERIODS_S]
        for name, count in counts.items():
            rates[name] = tuple(
                None if start is None else (count - start[1].get(name, 0.0)) / (now_s - start[0])
                for start in starts
            )
        return rates


def _start(
    readings: list[tuple[float, dict[str, float]]], now_s: float, period_s: float
) -> tuple[float, dict[str, float]] | None:
    """The newest reading that is at least `period_s` old, else the oldest one; None if none is older than
    now."""
    earlier = [reading for reading in readings if reading[0] < now_s]
    old = [reading for reading in earlier if now_s - reading[0] >= period_s]
    return old[-1] if old else earlier[0] if earlier else None
