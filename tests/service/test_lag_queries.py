"""When a role asks the broker for lags: now and then, but not in front of messages that waited."""

from __future__ import annotations

import pytest

from tests.memory.broker import ManualClock
from twinsieve.pipeline.service.loop import Loop
from twinsieve.pipeline.service.metrics import Metrics


class _Role(Loop):
    """Its steps take as long as they are told to; it notes when it queries."""

    def __init__(self) -> None:
        self.time = ManualClock()
        super().__init__("worker", self.time, Metrics(self.time))
        self.step_s = 0.0
        self.queries_s: list[float] = []
        self._began_s = self.time.monotonic_s()

    def turn_for(self, seconds: float, step_s: float) -> None:
        self.step_s = step_s
        for _ in range(round(seconds / step_s)):
            self._turn()

    def _step(self) -> None:
        self.time.sleep(self.step_s)

    def _query_lag(self) -> None:
        self.queries_s.append(round(self.time.monotonic_s() - self._began_s, 2))

    def _set_gauges(self) -> None:
        """Nothing to show."""

    def _give_up(self, *, leaves: bool = False) -> None:
        """Nothing to close."""

    _finish = _set_gauges


def test_a_role_queries_lags_every_five_seconds() -> None:
    role = _Role()
    role.turn_for(16.0, 0.25)
    assert role.queries_s == [5.0, 10.0, 15.0]


def test_lag_query_is_postponed_after_a_stall() -> None:
    role = _Role()
    role.turn_for(4.0, 0.25)
    role.turn_for(4.0, 4.0)
    role.turn_for(6.0, 0.25)
    assert role.queries_s == [13.0]


@pytest.mark.parametrize("step_s", [0.75, 1.5])
def test_a_role_that_is_always_slow_queries_lags_all_the_same(step_s: float) -> None:
    role = _Role()
    role.turn_for(45.0, step_s)
    assert role.queries_s == [15.0, 30.0, 45.0]
