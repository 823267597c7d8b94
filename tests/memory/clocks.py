"""Clocks beside that of the cluster: each process has its own, which may be wrong."""

from __future__ import annotations

from dataclasses import dataclass

from tests.memory.received import received
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import Copies, Messages


@dataclass
class LocalClock:
    """The clock of one process. Its fields may be changed at any time.

    ahead_s: how far its wall clock runs ahead of the cluster's; below 0: behind
    paused_s: how long its machine stood still, which none of its clocks has noticed
    """

    cluster: Clock
    ahead_s: float = 0.0
    paused_s: float = 0.0

    def now_ms(self) -> int:
        """Wall clock, ms since 1970."""
        return self.cluster.now_ms() + round(1000 * (self.ahead_s - self.paused_s))

    def monotonic_s(self) -> float:
        """Seconds since some start."""
        return self.cluster.monotonic_s() - self.paused_s

    def sleep(self, seconds: float) -> None:
        """Time passes for everybody."""
        self.cluster.sleep(seconds)


class Clocks:
    """What the clients of one process know of time.

    local: the clock of the process; broker: the broker's, as far as it was told
    """

    def __init__(self, local: Clock) -> None:
        self.local = local
        self.broker = BrokerClock(local.monotonic_s)

    def stamped(self, messages: Messages | Copies) -> Messages:
        """These messages as a client sends them: each has a time."""
        now_ms = self.broker.now_ms()
        return received(messages, self.local.now_ms() if now_ms is None else now_ms)
