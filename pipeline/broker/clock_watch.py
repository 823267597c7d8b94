"""Reports when the clock of this process differs from the broker's clock."""

from __future__ import annotations

import math

from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.ports import Clock

DIFFER_MS = 60_000
"""A clock that differs from the broker's by more than this is wrong."""
_LOOK_EVERY_S = 5.0
_REPORT_EVERY_S = 15.0
"""Shortest time between two log lines, however often the clock jumps."""
_REPORT_AGAIN_S = 600.0


class ClockWatch:
    """Compares the clock of this process with the broker's, for one role.

    broker: the broker's clock, as the clients of the role learn it; local: the clock of this process
    """

    def __init__(self, broker: BrokerClock, local: Clock) -> None:
        self._broker = broker
        self._local = local
        self._reported_ms = 0
        self._looked_s = self._reported_s = -math.inf

    @property
    def ahead_s(self) -> float | None:
        """Seconds by which the clock of this process is ahead of the broker's; None while that is unknown."""
        ahead_ms = self._broker.ahead_ms(self._local.now_ms())
        return None if ahead_ms is None else ahead_ms / 1000

    def look(self) -> list[str]:
        """Lines to log now: that the clock is wrong, and by how much, or that it is right again.

        A change is reported within 20 s. A clock that stays wrong is reported every ten minutes.
        """
        now_s = self._local.monotonic_s()
        if now_s - self._looked_s < _LOOK_EVERY_S:
            return []
        self._looked_s = now_s
        ahead_ms = self._broker.ahead_ms(self._local.now_ms())
        if ahead_ms is None:
            return []
        wrong, since_s = abs(ahead_ms) > DIFFER_MS, now_s - self._reported_s
        changed = abs(ahead_ms - self._reported_ms) > DIFFER_MS and since_s >= _REPORT_EVERY_S
        if not changed and not (wrong and since_s >= _REPORT_AGAIN_S):
            return []
        self._reported_s, self._reported_ms = now_s, ahead_ms if wrong else 0
        if not wrong:
            return ["the clock of this process agrees with the broker's again"]
        where = "ahead of" if ahead_ms > 0 else "behind"
        return [
            f"the clock of this process is {abs(ahead_ms) / 1000:.0f} s {where} the broker's; correct the "
            "clock, because times in this log and in metrics are wrong; nothing is lost, because the "
            "broker's time is used"
        ]
