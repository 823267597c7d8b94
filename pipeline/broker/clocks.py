"""The broker's clock, as far as the broker's answers show it. All decisions about time use this clock.

All internal topics have `message.timestamp.type=LogAppendTime`: the broker stores with each record the time
at which it wrote the record, and the acknowledgement of an append contains that time. The clock of a process
may be wrong by hours, and may jump, so it decides nothing, and a difference is reported.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from twinsieve.pipeline.broker.admin import ANY_MS, TopicInfo
from twinsieve.pipeline.broker.records import Records

_BROKERS_DIFFER_MS = 10_000
"""The clocks of a cluster's brokers are assumed to differ by at most this."""
_WAITS_MS = 60_000
"""A message may wait this long for its verdict, and must not become too old for its topic in that time."""


class BrokerClock:
    """The broker's clock. All threads of a process may use it.

    monotonic_s: returns seconds that never go back, whatever the wall clock of this process does

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
        """Lower and upper bound of what the broker's clock showed at second 0 of `monotonic_s`, in ms."""

    def acknowledged(self, stamp_ms: int, sent_s: float) -> None:
        """Note that a record, handed to a client at `sent_s`, was written by the broker at `stamp_ms`."""
        with self._lock:
            self._lead = stamp_ms - self._passed_ms(), stamp_ms + 1 - 1000 * sent_s

    def read(self, records: Records) -> None:
        """Note that these records were read: the broker's clock is past the timestamps that the broker set.

        If a timestamp is later than is possible, this process was frozen without noticing. The clock is then
        unknown until the next acknowledgement.
        """
        if not records.stamped_by_broker or not len(records):
            return
        with self._lock:
            least, most = self._lead
            lead_ms = int(records.columns.times_ms[-1]) - self._passed_ms()
            self._lead = max(least, lead_ms), (math.inf if lead_ms > most + _BROKERS_DIFFER_MS else most)

    def now_ms(self) -> int | None:
        """The time by the broker's clock in ms, or a little less, never more; None while it is unknown."""
        least, most = self._lead
        return None if math.isinf(most) else int(least + self._passed_ms())

    def ahead_ms(self, local_ms: int) -> int | None:
        """Number of ms by which a clock that shows `local_ms` is at least ahead of the broker's; negative if
        it is behind.

        None if that is unknown. If records were read, but no append was acknowledged, only a clock that is
        behind the records can be recognized.
        """
        least, most = self._lead
        lead = local_ms - self._passed_ms()
        if lead < least:
            return math.ceil(lead - least)
        return None if math.isinf(most) else max(0, int(lead - most))

    def accepted_ms(self, info: TopicInfo) -> tuple[int, int]:
        """First and last timestamp that this topic accepts; no limits while the broker's clock is unknown.

        In doubt a timestamp is accepted, because the broker checks it too.
        """
        least, most = self._lead
        if math.isinf(most):
            return -ANY_MS, ANY_MS
        passed_ms, behind_ms = self._passed_ms(), info.accepted_ms("before")
        oldest = int(least + passed_ms) - behind_ms + min(_WAITS_MS, behind_ms // 10)
        return oldest, math.ceil(most + passed_ms) + info.accepted_ms("after")

    def _passed_ms(self) -> float:
        return 1000 * self._monotonic_s()
