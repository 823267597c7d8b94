"""The broker's clock counts, as far as its answers show it.

A topic with `message.timestamp.type=LogAppendTime`, as all internal topics are, holds the time at which the
broker wrote each record, and the acknowledgement of an append holds that time. The clock of a process may be
wrong by hours, and may jump: it decides nothing, and a difference is reported.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from twinsieve.pipeline.broker.admin import ANY_MS, TopicInfo
from twinsieve.pipeline.broker.records import Records

_BROKERS_DIFFER_MS = 10_000
"""Clocks of the brokers of a cluster differ by at most this."""
_WAITS_MS = 60_000
"""A message may wait this long for its verdict, and must not grow too old for its topic meanwhile."""


class BrokerClock:
    """The broker's clock. Every thread of a process may call it.

    monotonic_s: seconds that never go back, whatever the wall clock of this process does

    >>> clock = BrokerClock(lambda: 100.0)
    >>> clock.now_ms() is None
    True
    >>> clock.acknowledged(1_600_000_000_000, sent_s=99.5)
    >>> clock.now_ms()
    1600000000000
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._lead = -math.inf, math.inf
        """What the broker's clock showed at second 0, in ms: at least, at most."""

    def acknowledged(self, stamp_ms: int, sent_s: float) -> None:
        """A record that was handed to a client at `sent_s` has been written, at `stamp_ms` by the broker."""
        with self._lock:
            self._lead = stamp_ms - self._passed_ms(), stamp_ms + 1 - 1000 * sent_s

    def read(self, records: Records) -> None:
        """These records have been read: the broker's clock is past the stamps that the broker gave them.

        A process that stood still without noticing learns so that it did: then the clock is unknown until the
        next acknowledgement.
        """
        if not records.stamped_by_broker or not records.timestamps_ms:
            return
        with self._lock:
            least, most = self._lead
            lead_ms = records.timestamps_ms[-1] - self._passed_ms()
            self._lead = max(least, lead_ms), (math.inf if lead_ms > most + _BROKERS_DIFFER_MS else most)

    def now_ms(self) -> int | None:
        """The broker's clock, never later than it is; None while it is unknown."""
        least, most = self._lead
        return None if math.isinf(most) else int(least + self._passed_ms())

    def ahead_ms(self, local_ms: int) -> int | None:
        """How far at least a clock that shows `local_ms` runs ahead of the broker's; below 0: behind.

        None where that is not known. Where records were only read it is known of a clock that is behind them.
        """
        least, most = self._lead
        lead = local_ms - self._passed_ms()
        if lead < least:
            return math.ceil(lead - least)
        return None if math.isinf(most) else max(0, int(lead - most))

    def accepted_ms(self, info: TopicInfo) -> tuple[int, int]:
        """First and last timestamp that this topic takes; any, where the broker's clock is not known.

        In doubt a timestamp is accepted: the broker checks it too.
        """
        least, most = self._lead
        if math.isinf(most):
            return -ANY_MS, ANY_MS
        passed_ms, behind_ms = self._passed_ms(), info.accepted_ms("before")
        oldest = int(least + passed_ms) - behind_ms + min(_WAITS_MS, behind_ms // 10)
        return oldest, math.ceil(most + passed_ms) + info.accepted_ms("after")

    def _passed_ms(self) -> float:
        return 1000 * self._monotonic_s()
