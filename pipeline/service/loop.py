"""What drives a role: step, query lags, start again after a failure, stop cleanly."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from enum import StrEnum

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.basics.states import Machine
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import BrokerError, FatalError
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.service.build import ALIVE_S
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.step_timer import StepTimer
from twinsieve.pipeline.worker.config import WorkerStep
from twinsieve.pipeline.worker.worker import Worker

_log = logging.getLogger("twinsieve")
POLL_S = 0.05
_QUERY_EVERY_S = 5.0
_QUERY_AT_LATEST_S = 15.0
_STALL_S = 0.5
_STEPS_FIRST = 20
"""After a step slower than _STALL_S, run this many steps before the next lag query, so that queued messages
go first."""
_SILENT_S = 25.0
"""A role that has asked in vain for this long hears no broker: longer than between two questions, and short
enough that half a minute after the first failure everybody is told."""
_ANSWERED = frozenset(
    {
        WorkerStep.OFFSETS_SENT,
        WorkerStep.COMMITTED,
        IndexStep.OFFSETS_SENT,
        IndexStep.COMMITTED,
        IndexStep.RESTORED,
    }
)
"""Steps that end with a broker's answer."""
_FAILED = Pauses(first_s=0.1, longest_s=6.4)
"""After a step that failed, until one succeeds."""
_NEW_CLIENTS_S = 300.0
"""Brokers that none of a role's clients has reached for this long may have other addresses now; a client asks
for them at the bootstrap addresses only when it is made (`kafka/confluent/options.py` says why)."""


class LoopPhase(StrEnum):
    """What a loop does with its role; docs/DESIGN.md draws the ways."""

    STARTING = "starting"
    """the role has done nothing yet: a missing permission ends the process"""
    WORKING = "working"
    """the role has emitted, judged or stood by, and the last step succeeded"""
    RETRYING = "retrying"
    """the last step failed; a missing permission may be granted again"""
    STOPPING = "stopping"
    """nothing new is begun"""


LOOP_WAYS: dict[LoopPhase, set[LoopPhase]] = {
    LoopPhase.STARTING: {LoopPhase.WORKING, LoopPhase.STOPPING},
    LoopPhase.WORKING: {LoopPhase.RETRYING, LoopPhase.STOPPING},
    LoopPhase.RETRYING: {LoopPhase.WORKING, LoopPhase.STOPPING},
    LoopPhase.STOPPING: set(),
}


class LagQueries:
    """When a role asks its broker for lags: now and then, but not in front of messages that waited."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queried_s = clock.monotonic_s()
        self._steps_first = 0

    def due_after(self, took_s: float) -> bool:
        """Whether it is time for the next query, after a step of `took_s` seconds."""
        self._steps_first = _STEPS_FIRST if took_s >= _STALL_S else max(0, self._steps_first - 1)
        every_s = _QUERY_AT_LATEST_S if self._steps_first else _QUERY_EVERY_S
        return self._clock.monotonic_s() - self._queried_s >= every_s

    def queried(self) -> None:
        """A query is done; one that took long is not due again at once."""
        self._queried_s = self._clock.monotonic_s()


class Loop(ABC):
    """One role in a thread of its own. `run` returns after `stop`, or raises what ends the process.

    error: what ends it, known before it has let go of its clients, which may take its time or hang
    """

    def __init__(self, name: str, clock: Clock, metrics: Metrics, alive_s: float = ALIVE_S) -> None:
        self.name = name
        self._clock = clock
        self._metrics = metrics
        self._alive_s = alive_s
        self._stop = threading.Event()
        self._pause_s = 0.0
        """The last one after a failure, 0.0 once a step succeeded."""
        self._turned_s = self._answered_s = clock.monotonic_s()
        self._new_clients_s = clock.monotonic_s() + _NEW_CLIENTS_S
        self._is_unanswered = False
        """The last question was not answered."""
        self._is_offline = False
        """The role is at work without a broker, for minutes perhaps."""
        self._is_silence_logged = False
        self._queries = LagQueries(clock)
        self._timer = StepTimer(metrics, clock, name, self._on_step)
        self.phase = Machine(LOOP_WAYS, LoopPhase.STARTING)
        metrics.role.labels(name).state(LoopPhase.STARTING)
        metrics.begin(name, lambda: self.is_answered)
        self._is_ready = False
        self.error: BaseException | None = None

    def stop(self) -> None:
        """Finish what is under way, then return from `run`."""
        self._stop.set()

    @property
    def alive(self) -> bool:
        """Something of it has gone on lately: a round, a step of it, a part of a snapshot; waiting for a
        broker counts as that."""
        return self._clock.monotonic_s() - self._turned_s < self._alive_s

    @property
    def remark(self) -> str:
        """What an operator should know beside whether it is ready; empty where there is nothing."""
        return ""

    @property
    def is_answered(self) -> bool:
        """A broker answers it: the last question was answered, and that is not too long ago."""
        return not self._is_unanswered and not self._is_silent

    @property
    def ready(self) -> bool:
        """It does what it is for, or stands by, and a broker answers it."""
        return self._is_ready and self.is_answered

    @property
    def _is_silent(self) -> bool:
        silent_s = self._clock.monotonic_s() - self._answered_s
        return not self._works_alone and silent_s >= _SILENT_S

    @property
    def _works_alone(self) -> bool:
        """No broker is asked, so none can answer."""
        return self._is_offline

    def log_silence(self) -> None:
        """Log when no broker answers any more. Called now and then from beside the role, which may hang in
        the very call that has no answer."""
        if self._is_silent and not self._is_silence_logged:
            self._is_silence_logged = True
            _log.warning("%s: no broker has answered for %.0f s; it asks on", self.name, _SILENT_S)

    def _on_step(self, step: str) -> None:
        """A step of a round is done, which may be a long one."""
        self._turned_s = self._clock.monotonic_s()
        if step == IndexStep.JUDGED:
            # No broker was asked meanwhile.
            self._answered_s = self._turned_s
        if step in _ANSWERED:
            self._on_answer()

    def _on_answer(self) -> None:
        """A broker has answered."""
        now_s = self._clock.monotonic_s()
        if self._is_silence_logged:
            self._is_silence_logged = False
            _log.info("%s: a broker answers again, after %.0f s", self.name, now_s - self._answered_s)
        self._answered_s = now_s
        self._new_clients_s = now_s + _NEW_CLIENTS_S
        self._metrics.set_answered(self.name)

    def run(self) -> None:
        """Until stopped. raises: SieveError when going on makes no sense"""
        try:
            while not self._stop.is_set():
                self._turned_s = self._clock.monotonic_s()
                self._turn()
            self._enter(LoopPhase.STOPPING)
            self._finish()
        except BaseException as error:
            self.error = error
            raise
        finally:
            self._is_ready = False
            self._give_up()
            self._set_gauges()

    def _enter(self, phase: LoopPhase) -> None:
        self.phase.go(phase)
        for entered in self.phase.changes():
            _log.info("%s: the role is %s now", self.name, entered)
        self._metrics.role.labels(self.name).state(phase)

    def _worked(self) -> None:
        """The role has emitted, judged or stood by."""
        if self.phase.now is LoopPhase.STARTING:
            self._enter(LoopPhase.WORKING)

    def _log_notices(self, notices: list[str]) -> None:
        for notice in notices:
            _log.warning("%s: %s", self.name, notice)
        notices.clear()

    def _turn(self) -> None:
        try:
            began_s = self._clock.monotonic_s()
            self._timer.begin_round()
            self._step()
            if self._queries.due_after(self._clock.monotonic_s() - began_s):
                self._set_gauges()
                self._query_broker()
            self._pause_s = 0.0
            # A step may find nothing because no broker answers: that it succeeds says nothing then.
            if self.phase.now is LoopPhase.RETRYING and self.is_answered and not self._is_aside:
                self._enter(LoopPhase.WORKING)
        except BrokerError as error:
            self._failed(error)
            if isinstance(error, FatalError):
                # What a role was never allowed to do is told once; a permission that was taken away may be
                # granted again.
                if error.fenced or (error.denied and self.phase.now is LoopPhase.STARTING):
                    raise
                self._give_up()
            elif not error.retryable:
                raise
            elif self._clock.monotonic_s() >= self._new_clients_s:
                self._new_clients_s = self._clock.monotonic_s() + _NEW_CLIENTS_S
                self._give_up()
            self._is_ready = False
            self._set_gauges()
            _log.warning("%s: %s", self.name, error)
            if self.phase.now is LoopPhase.WORKING:
                self._enter(LoopPhase.RETRYING)
            self._pause_s = _FAILED.after(self._pause_s)
            self._stop.wait(self._pause_s)

    def _query_broker(self) -> None:
        """Ask a broker for what only it knows. raises: BrokerError"""
        try:
            self._query_lag()
        except BrokerError as error:
            self._is_unanswered = error.retryable
            raise
        finally:
            self._queries.queried()
        self._is_unanswered = False
        self._on_answer()

    def _set_clock(self, role: Worker | Index | None) -> None:
        self._metrics.set_clock_offset(self.name, role.clocks.ahead_s if role is not None else None)

    @property
    def _is_aside(self) -> bool:
        """It leaves its work to other processes for a while."""
        return False

    def _failed(self, error: BrokerError) -> None:  # noqa: ARG002 - for a role that looks at it
        """A round ended with this error, which has left the role as it is."""
        self._metrics.broker_errors.labels(self.name).inc()

    @abstractmethod
    def _step(self) -> None:
        """One round, on a role that is made if there is none."""

    @abstractmethod
    def _set_gauges(self) -> None:
        """Gauges that no broker is asked for: true also while none answers, and when there is no role."""

    @abstractmethod
    def _query_lag(self) -> None:
        """Gauges and progress that a broker knows; asks a broker. raises: BrokerError"""

    @abstractmethod
    def _finish(self) -> None:
        """The clean end."""

    @abstractmethod
    def _give_up(self) -> None:
        """Drop the role as it is."""
