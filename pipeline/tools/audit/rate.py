"""Drop rate over the rows of a run, and number of drops over the time of the messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from twinsieve.pipeline.why.drops import Drop

_MOST_TIMES = 1 << 14
"""The largest number of times that are held to find the range which most of them cover."""
_TAIL = 0.005
_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
_SPANS_MS = (
    *(second * 1000 for second in (1, 2, 5, 10, 15, 30)),
    *(minute * _MINUTE for minute in (1, 2, 5, 10, 15, 30)),
    *(hour * _HOUR for hour in (1, 2, 3, 6, 12)),
    *(day * _DAY for day in (1, 2, 7, 14, 28, 91, 182, 364)),
)
_YEAR_MS = 364 * _DAY


class Extent:
    """Which rows and times drops cover, from a first reading of them.

    first, last: positions of the first and the last drop; None without drops
    in_order: each drop has a position, and each is behind the one before. Then each number from first to last
        is a row of the run, so a share of rows can be computed
    timed: number of drops that have a time
    """

    def __init__(self) -> None:
        self.first: int | None = None
        self.last: int | None = None
        self.in_order = True
        self.timed = 0
        self._min_ms = self._max_ms = 0
        self._step = 1
        self._times: list[int] = []

    def add(self, drop: Drop) -> None:
        """Note one drop."""
        position = drop.message.position
        if position is None or (self.last is not None and position <= self.last):
            self.in_order = False
        if position is not None:
            self.first = position if self.first is None else self.first
            self.last = position
        if drop.time_ms is not None:
            self._add_time(drop.time_ms)

    def _add_time(self, time_ms: int) -> None:
        self._min_ms = min(self._min_ms, time_ms) if self.timed else time_ms
        self._max_ms = max(self._max_ms, time_ms) if self.timed else time_ms
        if self.timed % self._step == 0:
            self._times.append(time_ms)
            if len(self._times) == _MOST_TIMES:
                del self._times[1::2]
                self._step *= 2
        self.timed += 1

    @property
    def rows(self) -> int | None:
        """Number of rows from the first drop to the last one; None if positions do not tell."""
        if self.first is None or self.last is None or not self.in_order:
            return None
        return self.last - self.first + 1

    def times(self) -> tuple[int, int] | None:
        """First and last time, ms since 1970, without those few that lie far outside the others.

        One message with a wrong year would else make all others one point. None if no drop has a time.
        """
        if not self._times:
            return None
        ordered = sorted(self._times)
        tail = int(len(ordered) * _TAIL)
        first, last = ordered[tail], ordered[-1 - tail]
        beside = (last - first) // 10
        return max(self._min_ms, first - beside), min(self._max_ms, last + beside)


@dataclass(frozen=True, slots=True)
class RowPart:
    """Consecutive rows of the run.

    first, last: their positions; drops: how many of them were dropped
    from_ms, to_ms: earliest and latest time of these drops, without times far outside all others; None if no
        drop has a time
    """

    first: int
    last: int
    drops: int
    from_ms: int | None
    to_ms: int | None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.last - self.first + 1

    @property
    def share(self) -> float:
        """Drops per row, 0 to 1."""
        return self.drops / self.rows


@dataclass(frozen=True, slots=True)
class TimePart:
    """A span of time. start_ms: its begin, ms since 1970; drops: number of drops with a time in it"""

    start_ms: int
    drops: int


@dataclass(frozen=True, slots=True)
class Rate:
    """Drops over rows and over time.

    rows: parts of the run from the first drop to the last; empty if positions do not tell
    times: parts of the time, span_ms long each; empty if no drop has a time
    before, after: drops whose time lies outside `times`; untimed: drops without a time
    """

    rows: list[RowPart]
    times: list[TimePart]
    span_ms: int
    before: int
    after: int
    untimed: int


class RateCounter:
    """Counts drops by parts of the run and of the time, in a second reading of them.

    extent: what the first reading found; parts: number of parts at most
    """

    def __init__(self, extent: Extent, parts: int) -> None:
        self._extent = extent
        self._width = _round_width(extent.rows or 1, extent.first or 0, parts)
        self._drops: Counter[int] = Counter()
        self._from: dict[int, int] = {}
        self._to: dict[int, int] = {}
        self._times = extent.times()
        self._span = 0 if self._times is None else _span_of(*self._times, parts)
        self._by_time: Counter[int] = Counter()
        self._before = self._after = self._untimed = 0

    def add(self, drop: Drop) -> None:
        """Count one drop."""
        position, time_ms = drop.message.position, drop.time_ms
        if self._extent.rows is not None and position is not None:
            part = (position - 1) // self._width
            self._drops[part] += 1
            if time_ms is not None and self._times and self._times[0] <= time_ms <= self._times[1]:
                self._from[part] = min(self._from.get(part, time_ms), time_ms)
                self._to[part] = max(self._to.get(part, time_ms), time_ms)
        if time_ms is None or self._times is None:
            self._untimed += 1
        elif time_ms < self._times[0]:
            self._before += 1
        elif time_ms > self._times[1]:
            self._after += 1
        else:
            self._by_time[time_ms // self._span] += 1

    def rate(self) -> Rate:
        """The counts."""
        return Rate(
            self._row_parts(), self._time_parts(), self._span, self._before, self._after, self._untimed
        )

    def _row_parts(self) -> list[RowPart]:
        first, last, width = self._extent.first, self._extent.last, self._width
        if self._extent.rows is None or first is None or last is None:
            return []
        return [
            RowPart(
                max(part * width + 1, first),
                min(part * width + width, last),
                self._drops[part],
                self._from.get(part),
                self._to.get(part),
            )
            for part in range((first - 1) // width, (last - 1) // width + 1)
        ]

    def _time_parts(self) -> list[TimePart]:
        if not self._by_time:
            return []
        first, last = min(self._by_time), max(self._by_time)
        return [TimePart(part * self._span, self._by_time[part]) for part in range(first, last + 1)]


def _round_width(rows: int, first: int, parts: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, … with which the rows make no more parts than wanted."""
    width, step = 1, 0
    while (first - 1 + rows - 1) // width - (first - 1) // width + 1 > parts:
        step += 1
        width = (1, 2, 5)[step % 3] * 10 ** (step // 3)
    return width


def _span_of(first_ms: int, last_ms: int, parts: int) -> int:
    """The shortest span of time such that these times make no more parts than wanted."""
    for span in _SPANS_MS:
        if last_ms // span - first_ms // span + 1 <= parts:
            return span
    years = -(-(last_ms - first_ms) // (_YEAR_MS * max(parts - 2, 1)))
    return max(years, 1) * _YEAR_MS
