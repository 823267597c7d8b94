"""The loop that runs one role: run its steps, query lags, retry after a failure, stop cleanly."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from enum import StrEnum
from functools import partial

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.basics.state_machine import Machine
from twinsieve.pipeline.broker.ports import Clock, Hook
from twinsieve.pipeline.broker.records import BrokerError, FatalError
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.service.metrics import OPEN_STEPS, WAITING_STEPS, Metrics
from twinsieve.pipeline.service.probe_limits import ALIVE_S
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.shards.shard import Shard
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
"""A role that has had no answer of a broker for this long is not ready. This is longer than the time between
two queries, and short enough to notice within half a minute that brokers have failed."""
_ANSWERED = frozenset(
    {
        WorkerStep.OFFSETS_SENT,
        WorkerStep.COMMITTED,
        IndexStep.OFFSETS_SENT,
        IndexStep.COMMITTED,
        IndexStep.RESTORED,
    }
)
"""Steps that succeed only if a broker has answered."""
_FAILED = Pauses(first_s=0.1, longest_s=6.4)
"""Lengths of the pauses after failed steps; they grow until a step succeeds."""
_NEW_CLIENTS_S = 300.0
"""After this long without an answer a role makes new clients. Brokers may have new addresses, and a client
may look up the bootstrap addresses only when it is made."""


class LoopPhase(StrEnum):
    """What a loop does with its role; docs/DESIGN.md shows the transitions."""

    STARTING = "starting"
    """the role has not emitted, judged or stood by yet; now a missing permission ends the process"""
    WORKING = "working"
    """the role has emitted, judged or stood by, and the last step succeeded"""
    RETRYING = "retrying"
    """the last step failed, or partitions emit nothing and are tried again; the role retries even after a
    missing permission, which may be granted again"""
    STOPPING = "stopping"
    """the role finishes its open work and begins no new work"""


LOOP_WAYS: dict[LoopPhase, set[LoopPhase]] = {
    LoopPhase.STARTING: {LoopPhase.WORKING, LoopPhase.STOPPING},
    LoopPhase.WORKING: {LoopPhase.RETRYING, LoopPhase.STOPPING},
    LoopPhase.RETRYING: {LoopPhase.WORKING, LoopPhase.STOPPING},
    LoopPhase.STOPPING: set(),
}


class LagQueries:
    """Decides when a role queries lags: every few seconds, but after a stall queued messages go first."""

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
        """Record the end of a query. The time until the next query begins here, so that slow queries do not
        follow each other at once."""
        self._queried_s = self._clock.monotonic_s()


class Loop(ABC):
    """Runs one role in a thread. `run` returns after `stop`, or raises the error that ends the process.

    error: the error that ended the loop; set before the loop closes its clients, because closing may hang
    has_hung: set by the watchdog when the role has made no progress for so long that the process ends
    thread: identifier of the thread that runs it; None before and afterwards
    turned_s: time of its last progress: it began a round, ended a step, or read or wrote a part of a
        snapshot. Rounds count even if no broker answers
    alive_s: seconds without progress after which it is not `alive`
    """

    def __init__(self, name: str, clock: Clock, metrics: Metrics, alive_s: float = ALIVE_S) -> None:
        self.name = name
        self._clock = clock
        self._metrics = metrics
        self.alive_s = alive_s
        self._stop = threading.Event()
        self._pause_s = 0.0
        """Length of the last pause after a failure; 0.0 after a step that succeeded."""
        self.turned_s = self._answered_s = clock.monotonic_s()
        self._new_clients_s = clock.monotonic_s() + _NEW_CLIENTS_S
        self._is_unanswered = False
        """Whether the last query got no answer."""
        self._is_offline = False
        """Whether the role works without a broker at present (on a snapshot), perhaps for minutes."""
        self._is_silence_logged = False
        self._queries = LagQueries(clock)
        self._timer = StepTimer(metrics, clock, name, self._on_step)
        self.phase = Machine(LOOP_WAYS, LoopPhase.STARTING)
        metrics.role.enter(LoopPhase.STARTING, name)
        metrics.begin(name, lambda: self.is_answered)
        self._is_ready = False
        self._error_line = self._last_step = ""
        """The error of the last step; empty if the step succeeded."""
        self.error: BaseException | None = None
        self.thread: int | None = None
        self.has_hung = False

    def stop(self) -> None:
        """Make `run` finish the open work and return. Called by another thread."""
        self._stop.set()

    @property
    def alive(self) -> bool:
        """Whether the role made progress in the last `alive_s` seconds."""
        return self._clock.monotonic_s() - self.turned_s < self.alive_s

    @property
    def is_lost(self) -> bool:
        """Whether the role will do no more work, because it failed or hangs."""
        return self.error is not None or self.has_hung

    @property
    def is_member(self) -> bool:
        """Whether the role may be a member of its group, so that it has to leave."""
        return False

    @property
    def remark(self) -> str:
        """What an operator should know besides readiness; empty if nothing."""
        return ""

    @property
    def why_not_ready(self) -> str:
        """What the role waits for while it is not ready."""
        silence = "" if self.is_answered else f"no broker answers, last step: {self._last_step or 'none'}"
        return self.remark or self._error_line or silence

    @property
    def waits_for_store(self) -> bool:
        """Whether the role waits for the folder of its snapshots, and has no open work."""
        return False

    @property
    def is_answered(self) -> bool:
        """Whether brokers answer this role: its last query was answered, and the last answer is recent."""
        return not self._is_unanswered and not self._is_silent

    @property
    def ready(self) -> bool:
        """Whether the role processes messages or stands by, and a broker answers it."""
        return self._is_ready and self.is_answered

    @property
    def _is_silent(self) -> bool:
        silent_s = self._clock.monotonic_s() - self._answered_s
        return not self._works_alone and silent_s >= _SILENT_S

    @property
    def _works_alone(self) -> bool:
        """Whether the role sends nothing to a broker at present, so that it cannot get an answer."""
        return self._is_offline

    def log_silence(self) -> None:
        """Log once that brokers stopped answering. Another thread must call this, because the role itself may
        hang in the call that gets no answer."""
        if self._is_silent and not self._is_silence_logged:
            self._is_silence_logged = True
            _log.warning(
                "%s: no broker has answered for %.0f s; trying again until one does", self.name, _SILENT_S
            )

    def _on_step(self, step: str) -> None:
        """Record the end of a step as progress, because a whole round may take long."""
        self.turned_s = self._clock.monotonic_s()
        self._last_step = step
        if step == IndexStep.JUDGED:
            # Judging sends nothing to a broker, so its time does not count as time without an answer.
            self._answered_s = self.turned_s
        if step in _ANSWERED:
            self._on_answer()

    def _on_answer(self) -> None:
        """Record that a broker has answered."""
        now_s = self._clock.monotonic_s()
        if self._is_silence_logged:
            self._is_silence_logged = False
            _log.info("%s: a broker answers again, after %.0f s", self.name, now_s - self._answered_s)
        self._answered_s = now_s
        self._new_clients_s = now_s + _NEW_CLIENTS_S
        self._metrics.set_answered(self.name)

    def run(self) -> None:
        """Run rounds until `stop`. raises: SieveError if a retry cannot help"""
        self.thread = threading.get_ident()
        try:
            while not self._stop.is_set():
                self.turned_s = self._clock.monotonic_s()
                self._turn()
            self._enter(LoopPhase.STOPPING)
            self._finish()
        except BaseException as error:
            self.error = error
            raise
        finally:
            self._is_ready = False
            # Also after an error, whatever it is: the group would keep a member that left no word until its
            # session times out, and a supervisor may start the process again before that.
            self._give_up(leaves=True)
            self._set_gauges()
            self.thread = None

    def _enter(self, phase: LoopPhase) -> None:
        self.phase.go(phase)
        for entered in self.phase.changes():
            _log.info("%s: state is now %s", self.name, entered)
        self._metrics.role.enter(phase, self.name)

    def _worked(self) -> None:
        """Record that the role has emitted, judged or stood by."""
        if self.phase.now is LoopPhase.STARTING:
            self._enter(LoopPhase.WORKING)

    def _log_notices(self, notices: list[str]) -> None:
        # Another thread may add one meanwhile.
        while notices:
            _log.warning("%s: %s", self.name, notices.pop(0))

    def _turn(self) -> None:
        try:
            began_s = self._clock.monotonic_s()
            self._timer.begin_round()
            self._step()
            if self._queries.due_after(self._clock.monotonic_s() - began_s):
                self._set_gauges()
                self._query_broker()
            self._pause_s, self._error_line = 0.0, ""
            # A step without messages succeeds even if no broker answers, so success alone does not prove that
            # a broker answers again.
            tries = self._is_aside or self._tries_parts
            if self.phase.now is LoopPhase.RETRYING and self.is_answered and not tries:
                self._enter(LoopPhase.WORKING)
            elif self.phase.now is LoopPhase.WORKING and self._tries_parts:
                self._enter(LoopPhase.RETRYING)
        except (BrokerError, ConfigError) as caught:
            if isinstance(caught, BrokerError):
                error = caught
            elif self.phase.now is LoopPhase.STARTING:
                raise
            else:
                # A file that settings name, for example a certificate that is being replaced.
                error = BrokerError(str(caught), retryable=True)
            self._failed(error)
            self._error_line = printable(str(error))
            if isinstance(error, FatalError):
                # A permission that is missing from the start ends the process. One that was withdrawn later
                # may be granted again, so the role retries.
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
        """Query a broker for the values that only a broker knows. raises: BrokerError"""
        try:
            self._query_lag()
        except BrokerError as error:
            self._is_unanswered = error.retryable
            raise
        finally:
            self._queries.queried()
        self._is_unanswered = False
        self._on_answer()

    def _set_clock(self, role: Worker | Index | Shard | None) -> None:
        self._metrics.set_clock_offset(self.name, role.clocks.ahead_s if role is not None else None)

    @property
    def _is_aside(self) -> bool:
        """Whether the role has left its group for a while, so that another process can do its work."""
        return False

    @property
    def _tries_parts(self) -> bool:
        """Whether the role tries a part of its work again and again, although its steps succeed."""
        return False

    def _failed(self, error: BrokerError) -> None:  # noqa: ARG002 - for roles that override this
        """Count the error that ended a round. The role is not closed or replaced yet, so that a subclass can
        examine it."""
        self._metrics.broker_errors.labels(self.name).inc()

    @abstractmethod
    def _step(self) -> None:
        """Run one round; make the role first if there is none."""

    @abstractmethod
    def _set_gauges(self) -> None:
        """Set the gauges that need no query to a broker; works while no broker answers and without a role."""

    @abstractmethod
    def _query_lag(self) -> None:
        """Query a broker, set the gauges that need its answer, and log the progress. raises: BrokerError"""

    @abstractmethod
    def _finish(self) -> None:
        """Finish the role's open work and close it."""

    @abstractmethod
    def _give_up(self, *, leaves: bool = False) -> None:
        """Close the role, if there is one, without finishing its open work.

        leaves: also leave its group, so that another member takes its work over at once
        """


_BEGUN = frozenset({WorkerStep.BEGUN, IndexStep.BEGUN})
_COMMITTED = frozenset({WorkerStep.COMMITTED, IndexStep.COMMITTED})


class StepTimer:
    """A hook that times the steps of one role, and counts the transactions that the role does not commit.

    step: another hook, called after each step too
    """

    def __init__(self, metrics: Metrics, clock: Clock, role: str, step: Hook) -> None:
        self._clock = clock
        self._step = step
        self._aborts = partial(metrics.aborts.labels, role)
        self._observe = {
            name: (metrics.waits if name in WAITING_STEPS else metrics.steps).labels(name).observe
            for name in (*WorkerStep, *IndexStep)
        }
        self._open: str | None = None
        """The last step of the open transaction; None if none is open."""
        self._last_s = clock.monotonic_s()

    def begin_round(self) -> None:
        """Begin a round. A transaction that is still open counts as not committed; the time between two
        rounds is not added to any step."""
        self._count_abort()
        self._last_s = self._clock.monotonic_s()

    def _count_abort(self) -> None:
        if self._open is not None:
            self._aborts(self._open).inc()
        self._open = None

    def __call__(self, step: str) -> None:
        now_s = self._clock.monotonic_s()
        self._observe[step](now_s - self._last_s)
        self._last_s = now_s
        if step in _BEGUN:
            # A worker may begin several transactions in a round, also after one that failed.
            self._count_abort()
        if step in OPEN_STEPS:
            self._open = step
        elif step in _COMMITTED:
            self._open = None
        self._step(step)
