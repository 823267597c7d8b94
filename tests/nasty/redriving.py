"""`twinsieve redrive` as a process of the driver: the roles that `run_redrive` drives, pass after pass."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

from tests.driver import APP, DEAD, DUPLICATES, OUTPUT, WORKER, Process
from tests.memory.broker import CrashError, MemoryBroker
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import BrokerError, Partition
from twinsieve.pipeline.operate.dead_letters import letter_topic, survey
from twinsieve.pipeline.service.ending_loop import CHECK_S, offsets_left
from twinsieve.pipeline.service.redrive import Pass, begin_redrive, redrive_broker
from twinsieve.pipeline.settings.model import OutputSettings, Settings
from twinsieve.stages.errors import StateError

SETTINGS = Settings(app=APP, output=OutputSettings(topic=OUTPUT, duplicates=DUPLICATES, dead_letter=DEAD))


@dataclass
class Redriving(Process):
    """One run of the command. `finished`: it came to the end of its last pass; `error`: why it ended before.

    reason: None for all; since_ms: as on the command line
    """

    job: str = "redrive"
    reason: DeadLetterReason | None = None
    since_ms: int | None = None
    passes: list[Pass] | None = None
    finished: bool = False
    error: str = ""
    _looked_s: float = field(init=False, default=0.0)

    def step(self, timeout_s: float = 0.1) -> None:
        """Start if it has not started; then step like a `Process`, and sometimes check whether a pass is done."""
        if not self.running or self._inside or self.world.clock.monotonic_s() < self.stop_s:
            return
        try:
            if self.passes is None:
                self._begin()
            if self.passes:
                super().step(timeout_s)
                self._look()
        except CrashError:
            self.running = False

    def _begin(self) -> None:
        broker = MemoryBroker(self.world.cluster, self._call_hook)
        try:
            with closing(broker):
                topic = letter_topic(SETTINGS, broker, self.since_ms)
                reasons = [self.reason] if self.reason is not None else []
                if not reasons:
                    reasons = sorted(survey(SETTINGS, broker, self.world.clock, topic).letters)
                self.passes = begin_redrive(APP, broker, topic, reasons)
        except BrokerError as error:
            if not error.retryable:
                self.error, self.running = str(error), False
            self.world.clock.sleep(1.0)
            return
        self._next()

    def _next(self) -> None:
        if not self.passes:
            self.finished, self.running = True, False
            return
        letters = self.passes[0].letters
        group = Names(APP).redrive(letters.reason)
        emit = replace(WORKER.emit, inputs=WORKER.topics)
        self.worker_config = replace(
            WORKER, topics=(letters.name,), group=group, trimmed="continue", emit=emit
        )
        self.worker = None

    def _worker_broker(self) -> Broker:
        assert self.passes
        return redrive_broker(super()._worker_broker(), self.world.clock, self.passes[0])

    def _look(self) -> None:
        now_s = self.world.clock.monotonic_s()
        if not self.running or not self.passes or now_s - self._looked_s < CHECK_S:
            return
        self._looked_s = now_s
        letters, ends = self.passes[0].letters, self.passes[0].ends
        held = {Partition(letters.topic, at.number): end for at, end in ends.items()}
        try:
            left = offsets_left(MemoryBroker(self.world.cluster).admin(), self.worker_config.group, held)
        except BrokerError:
            return
        if left:
            return
        with suppress(StateError):
            self.terminate()
        self.passes.pop(0)
        self.running, self.index = bool(self.passes), None
        self._next()
