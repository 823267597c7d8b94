"""Both loops of a process, turned by hand on a clock that moves by hand, and the text of its metrics page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress

from tests.memory.broker import Hook, LocalClock, MemoryBroker
from tests.service.scraped import Series, series
from tests.service.test_changed_settings import Deployment, deployment
from tests.twins import Later
from twinsieve.pipeline.broker.ports import Clock, no_hook
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.service.index_loop import IndexLoop
from twinsieve.pipeline.service.input_watch import InputWatch
from twinsieve.pipeline.service.loop import Loop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.worker_loop import WorkerLoop
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.judge.scheme import Scheme

_LOOK_S = 3.0


class _Stop(threading.Event):
    """A role that pauses is passed over until its pause is over by the clock; the others go on."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._until_s = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        self._until_s = self._clock.monotonic_s() + (timeout or 0.0)
        return self.is_set()

    @property
    def is_pausing(self) -> bool:
        return self._clock.monotonic_s() < self._until_s


class Turned:
    """One process of a deployment; `world` is that of the process before, or a new one.

    ahead_s: how far its clock runs ahead of the broker's at first
    """

    def __init__(
        self,
        settings: Settings,
        scheme: Scheme,
        *,
        world: Deployment | None = None,
        hook: Hook = no_hook,
        name: str = "one",
        background: Executor | None = None,
        ahead_s: float = 0.0,
    ) -> None:
        self.world = world or deployment(settings, scheme)
        self.clock = LocalClock(self.world.clock, ahead_s)
        broker = MemoryBroker(self.world.cluster, hook, self.clock)
        self.metrics = Metrics(self.clock)
        builder = Builder(
            settings,
            scheme,
            self.clock,
            lambda _: broker,
            name,
            emit=True,
            background=background or Later(),
            queries=Later(),
        )
        self.index = IndexLoop(builder, self.clock, self.metrics)
        self.worker = WorkerLoop(builder, self.clock, self.metrics)
        self.loops: list[Loop] = [self.worker, self.index]
        self._admin = MemoryBroker(self.world.cluster, no_hook, self.clock).admin()
        self._input = InputWatch(settings, self.clock, self.metrics)
        self._look_s = 0.0
        self._stops = {loop: _Stop(self.clock) for loop in self.loops}
        for loop, stop in self._stops.items():
            loop._stop = stop

    def turn(self, times: int) -> None:
        for _ in range(times):
            if self.clock.monotonic_s() >= self._look_s:
                self._look_s = self.clock.monotonic_s() + _LOOK_S
                with suppress(BrokerError):
                    self._input.look(self._admin)
            for loop in self.loops:
                if not self._stops[loop].is_pausing:
                    loop._turn()
                loop.log_silence()

    def run(self, seconds: float, each_s: Callable[[], object] = lambda: None) -> None:
        """Turn for that time. each_s: called about once a second"""
        end_s = self.clock.monotonic_s() + seconds
        called_s = self.clock.monotonic_s()
        while self.clock.monotonic_s() < end_s:
            self.turn(1)
            self.clock.sleep(0.1)
            if self.clock.monotonic_s() - called_s >= 1.0:
                called_s = self.clock.monotonic_s()
                each_s()

    def run_until(self, holds: Callable[[], bool], seconds: float) -> None:
        """Turn until that holds, for that time at most."""
        end_s = self.clock.monotonic_s() + seconds
        while not holds():
            assert self.clock.monotonic_s() < end_s, f"not within {seconds:g} s"
            self.turn(1)
            self.clock.sleep(0.1)

    @property
    def ready(self) -> bool:
        """What /readyz says."""
        return all(loop.ready for loop in self.loops)

    @property
    def alive(self) -> bool:
        """What /healthz says."""
        return all(loop.alive for loop in self.loops)

    def page(self) -> dict[str, Series]:
        """The series of /metrics by name, without the program's own, and by the values of their labels."""
        return series(self.metrics.registry.collect())

    def value(self, name: str, *labels: str) -> float | None:
        """One series, None where there is none."""
        return self.page().get(name, {}).get(labels)
