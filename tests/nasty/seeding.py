"""`twinsieve seed` as a process of the driver: the roles that `run_seed` drives, and what it looks at."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

from tests.driver import APP, SEED_GROUP, SEEDED, WORKER, Process
from tests.memory.broker import CrashError, MemoryBroker
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import BrokerError, Partition
from twinsieve.pipeline.service.ending_loop import CHECK_S
from twinsieve.pipeline.service.seed import SeedWatch, seed_range
from twinsieve.pipeline.service.seed_order import ordered_broker
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.config import WorkerConfig
from twinsieve.stages.errors import StateError

SETTINGS = Settings(app=APP)
SEED_WORKER = replace(
    WORKER, topics=(SEEDED,), group=SEED_GROUP, emit=replace(WORKER.emit, emit=False), trimmed="continue"
)


@dataclass
class Seeding(Process):
    """One run of the command. `refused` says why it ended before its end; `finished`: it came to `ends`."""

    job: str = "seed"
    worker_config: WorkerConfig = SEED_WORKER
    ends: dict[Partition, int] = field(default_factory=dict)
    refused: str = ""
    finished: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        broker = MemoryBroker(self.world.cluster, lambda step: self.hook(step))
        self._looked_s = self.world.clock.monotonic_s()
        try:
            self.ends, _ = seed_range(SETTINGS, SEEDED, broker)
            self._watch = SeedWatch(broker.admin(), APP, self.ends)
        except CrashError:
            self.running = False
        except BrokerError as error:
            self._end(error)

    def _worker_broker(self) -> Broker:
        return ordered_broker(super()._worker_broker(), self.world.clock, self.ends)

    def step(self, timeout_s: float = 0.1) -> None:
        """As `Process.step`, and now and then the look whether it is done."""
        if self._inside:
            return
        super().step(timeout_s)
        now_s = self.world.clock.monotonic_s()
        if not self.running or now_s < self.stop_s or now_s - self._looked_s < CHECK_S:
            return
        self._looked_s = now_s
        self._inside = True
        try:
            self._look()
        finally:
            self._inside = False

    def _look(self) -> None:
        try:
            done = self._watch.done()
        except CrashError:
            self.running = False
        except BrokerError as error:
            if not error.retryable:
                self._end(error)
        else:
            self.finished = done
            if done:
                try:
                    self.terminate()
                except CrashError:
                    pass
                except StateError as said:
                    self.world.stops.append(str(said))

    def _end(self, error: BrokerError) -> None:
        """As the loop does: its worker is given up, its index leaves."""
        self.refused, self.running = str(error), False
        with suppress(BrokerError, CrashError):
            if self.worker is not None:
                self.worker.close()
            if self.index is not None:
                self.index.close()
