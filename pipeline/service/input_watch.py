"""Watches all input partitions of the app, also those that no worker has, and sets their gauges.

A process does this in a thread of its own with a client of its own, so that the gauges stay true while a role
hangs, tries again, or has no partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.operate.input_lag import InputLag, input_lags
from twinsieve.pipeline.service.metrics import Metrics, Waiting
from twinsieve.pipeline.service.watching import watching
from twinsieve.pipeline.settings.model import Settings

_EVERY_S = 3.0
_MOST_ARRIVALS = 64


class Arrivals:
    """When the messages of one partition that have not come out arrived, as far as queries of its end show.

    >>> arrivals = Arrivals()
    >>> arrivals.oldest_s(1, 10, 10), arrivals.oldest_s(4, 12, 10), arrivals.oldest_s(7, 20, 11)
    (None, 4, 4)
    >>> arrivals.oldest_s(10, 20, 12)
    7
    """

    def __init__(self) -> None:
        self._ends: deque[tuple[float, int]] = deque()
        """Time of a query, and the end that it showed first; ascending in both."""

    def oldest_s(self, now_s: float, end: int, committed: int) -> float | None:
        """The time of the query that first showed the oldest message at or after `committed`; None if no
        message is there."""
        if self._ends and end < self._ends[-1][1]:
            self._ends.clear()  # another topic, or a truncated one
        if not self._ends or end > self._ends[-1][1]:
            self._ends.append((now_s, end))
        while self._ends and self._ends[0][1] <= committed:
            self._ends.popleft()
        if len(self._ends) > _MOST_ARRIVALS:
            # Two neighbours become one, with the earlier time: a message never looks younger than it is.
            pairs = list(self._ends)
            merged = [(pairs[n][0], pairs[min(n + 1, len(pairs) - 1)][1]) for n in range(0, len(pairs), 2)]
            self._ends = deque(merged)
        return self._ends[0][0] if self._ends else None


class InputWatch:
    """Sets the gauges of the input at each `look`."""

    def __init__(self, settings: Settings, clock: Clock, metrics: Metrics) -> None:
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._arrivals: dict[Partition, Arrivals] = {}
        self._ends: dict[Partition, int] = {}
        self._begun: dict[Partition, int] = {}
        self._open: dict[tuple[Partition, int | None], float] = {}
        """By the offset of the oldest open transaction: the time of the query that first showed it."""

    def look(self, admin: Admin) -> None:
        """Query the broker and set the gauges. raises: BrokerError"""
        lags = input_lags(self._settings, admin)
        now_s = self._clock.monotonic_s()
        # While a partition has no leader, its end is at least what it was.
        self._ends = {at: self._ends.get(at, 0) if lag.end is None else lag.end for at, lag in lags.items()}
        unplaced = [at for at, lag in lags.items() if lag.committed is None]
        begins = self._begins(admin, unplaced, lags)
        opened = [(at, lag.open_at) for at, lag in lags.items() if lag.open_at is not None]
        self._open = {each: self._open.get(each, now_s) for each in opened}
        waiting = {}
        for at, lag in lags.items():
            end, committed = self._ends[at], begins[at] if lag.committed is None else lag.committed
            oldest_s = self._arrivals.setdefault(at, Arrivals()).oldest_s(now_s, end, committed)
            opened_s = self._open.get((at, lag.open_at))
            waiting[at] = Waiting(end, max(0, end - committed), oldest_s, lag.worker is not None, opened_s)
        self._arrivals = {at: self._arrivals[at] for at in lags}
        self._metrics.set_input(waiting, now_s)

    def _begins(
        self, admin: Admin, unplaced: list[Partition], lags: Mapping[Partition, InputLag]
    ) -> dict[Partition, int]:
        """Where partitions begin in which nothing is committed yet: a new app skips what is there, or not."""
        if self._settings.input.start == "latest":
            return {at: 0 if lags[at].recreated else self._ends[at] for at in unplaced}
        self._begun |= admin.beginning_offsets([at for at in unplaced if lags[at].end is not None])
        return {at: self._begun.get(at, self._ends[at]) for at in unplaced}


def watching_input(
    settings: Settings, connect: Callable[[Settings], Broker], clock: Clock, metrics: Metrics
) -> AbstractContextManager[None]:
    """Context manager: a thread looks at the input every few seconds."""
    watch = InputWatch(settings, clock, metrics)
    return watching(
        "input-watch",
        watch.look,
        lambda: connect(settings),
        clock,
        every_s=_EVERY_S,
        problem="input: its gauges are out of date",
    )
