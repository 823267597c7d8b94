"""The loops that drive the two roles: step, query lags, start anew after a failure, stop cleanly."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.basics.states import Machine
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import AbortableError, BrokerError, FatalError, MovedOnError, Partition
from twinsieve.pipeline.index.config import MAX_BLOCKS, IndexStep
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.index.snapshot_store import Moved
from twinsieve.pipeline.index.transaction import Pace
from twinsieve.pipeline.operate.log_sizes import LogSizes
from twinsieve.pipeline.service.build import ALIVE_S, Builder
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.worker.backoff import Refused
from twinsieve.pipeline.worker.config import WorkerStep
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.pipeline.worker.worker import Worker

_log = logging.getLogger("twinsieve")
_POLL_S = 0.05
_QUERY_EVERY_S = 5.0
_QUERY_AT_LATEST_S = 15.0
_STALL_S = 0.5
_STEPS_FIRST = 20
"""After a step slower than _STALL_S, run this many steps before the next lag query, so that queued messages
go first."""
_FINISH_S = 20.0
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
_LOAD_S = 60.0
"""For each GiB of a snapshot, the most that filling the sieve takes after its last byte, in one go."""
_BEHIND_S = 10.0
_SAY_BEHIND_S = 60.0
"""An index that judges what has waited for longer than the first says so once in the second."""
_ASIDE_AFTER = 3
"""Failures in a row after which an index leaves its group, and comes back after a pause."""
_ASIDE = Pauses(first_s=30.0, longest_s=600.0)
"""Such pauses, until a decision is recorded."""
_FAILED = Pauses(first_s=0.1, longest_s=6.4)
"""After a step that failed, until one succeeds."""
_SAY_EVERY_S = 10.0
"""Seconds between two lines on how far a snapshot has been read or written."""
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
        self._asks_nobody = False
        """The role is at work without a broker, for minutes perhaps."""
        self._is_told_silent = False
        self._queries = LagQueries(clock)
        self._timer = metrics.timer(name, self._on_step)
        self.phase = Machine(LOOP_WAYS, LoopPhase.STARTING)
        metrics.role.labels(name).state(LoopPhase.STARTING)
        metrics.begin(name, lambda: self.hears)
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
    def hears(self) -> bool:
        """A broker answers it: the last question was answered, and that is not too long ago."""
        return not self._is_unanswered and not self._is_silent

    @property
    def ready(self) -> bool:
        """It does what it is for, or stands by, and a broker answers it."""
        return self._is_ready and self.hears

    @property
    def _is_silent(self) -> bool:
        silent_s = self._clock.monotonic_s() - self._answered_s
        return not self._works_alone and silent_s >= _SILENT_S

    @property
    def _works_alone(self) -> bool:
        """No broker is asked, so none can answer."""
        return self._asks_nobody

    def look(self) -> None:
        """Log when no broker answers any more. Called now and then from beside the role, which may hang in
        the very call that has no answer."""
        if self._is_silent and not self._is_told_silent:
            self._is_told_silent = True
            _log.warning("%s: no broker has answered for %.0f s; it asks on", self.name, _SILENT_S)

    def _on_step(self, step: str) -> None:
        """A step of a round is done, which may be a long one."""
        self._turned_s = self._clock.monotonic_s()
        if step == IndexStep.JUDGED:
            # No broker was asked meanwhile.
            self._answered_s = self._turned_s
        if step in _ANSWERED:
            self._hear()

    def _hear(self) -> None:
        """A broker has answered."""
        now_s = self._clock.monotonic_s()
        if self._is_told_silent:
            self._is_told_silent = False
            _log.info("%s: a broker answers again, after %.0f s", self.name, now_s - self._answered_s)
        self._answered_s = now_s
        self._new_clients_s = now_s + _NEW_CLIENTS_S
        self._metrics.see_answer(self.name)

    def run(self) -> None:
        """Until stopped. raises: SieveError when going on makes no sense"""
        try:
            while not self._stop.is_set():
                self._turned_s = self._clock.monotonic_s()
                self._turn()
            self._go(LoopPhase.STOPPING)
            self._finish()
        except BaseException as error:
            self.error = error
            raise
        finally:
            self._is_ready = False
            self._give_up()
            self._set_gauges()

    def _go(self, phase: LoopPhase) -> None:
        self.phase.go(phase)
        for entered in self.phase.changes():
            _log.info("%s: the role is %s now", self.name, entered)
        self._metrics.role.labels(self.name).state(phase)

    def _did_its_work(self) -> None:
        """The role has emitted, judged or stood by."""
        if self.phase.now is LoopPhase.STARTING:
            self._go(LoopPhase.WORKING)

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
                self._ask()
            self._pause_s = 0.0
            # A step may find nothing because no broker answers: that it succeeds says nothing then.
            if self.phase.now is LoopPhase.RETRYING and self.hears and not self._is_aside:
                self._go(LoopPhase.WORKING)
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
                self._go(LoopPhase.RETRYING)
            self._pause_s = _FAILED.after(self._pause_s)
            self._stop.wait(self._pause_s)

    def _ask(self) -> None:
        """Ask a broker for what only it knows. raises: BrokerError"""
        try:
            self._query_lag()
        except BrokerError as error:
            self._is_unanswered = error.retryable
            raise
        finally:
            self._queries.queried()
        self._is_unanswered = False
        self._hear()

    def _see_clock(self, role: Worker | Index | None) -> None:
        self._metrics.see_clock(self.name, role.clocks.ahead_s if role is not None else None)

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


class WorkerLoop(Loop):
    """Drives a worker.

    index: of the same process: once that has failed, a stop waits for no more answers
    """

    def __init__(
        self, builder: Builder, clock: Clock, metrics: Metrics, *, index: IndexLoop | None = None
    ) -> None:
        super().__init__("worker", clock, metrics, builder.alive_s)
        self._builder = builder
        self._index = index
        self._worker: Worker | None = None
        self._stalls = StallDetector()
        self._refused: dict[Partition, Refused] = {}

    def _step(self) -> None:
        if self._worker is None:
            self._worker = self._builder.worker(self._timer)
            self._worker.refused.update(self._refused)
            self._stalls = StallDetector()
        worker = self._worker
        self._count(worker.step(_POLL_S))
        self._is_ready = worker.ready
        self._tell(worker)

    def _tell(self, worker: Worker) -> None:
        """Log and count what the worker has noted."""
        self._log_notices(worker.notices)
        self._metrics.take_worked(worker)

    def _count(self, emission: Emission) -> None:
        if emission.kinds:
            self._did_its_work()
        self._metrics.emitted(emission)

    def _set_gauges(self) -> None:
        self._metrics.see_waiting(self._worker)
        self._see_clock(self._worker)

    def _query_lag(self) -> None:
        if self._worker is not None:
            progress = self._worker.progress()
            self._metrics.see_worker(progress)
            unread = self._worker.unread({at: end for at, (_, end) in progress.items()})
            still = self._stalls.stalled(unread, waiting=self._worker.unanswered > 0)
            if still:
                raise FatalError(f"{still[0]}: there is input, but none arrives; new clients are needed")

    def _finish(self) -> None:
        worker = self._worker
        if worker is None:
            return
        deadline_s = self._clock.monotonic_s() + _FINISH_S
        try:
            while self._clock.monotonic_s() < deadline_s:
                emission = worker.finish(_POLL_S)
                self._count(emission)
                if worker.idle:
                    worker.leave()
                    return
                if self._index is not None and self._index.error is not None and not emission.kinds:
                    break  # nobody here answers the rest, and what was answered is out
        except BrokerError as error:
            _log.warning(
                "worker: stopped before it told the index how far it has emitted (%s); nothing is lost", error
            )
            return
        _log.warning("worker: stopped with %d blocks unanswered; they are asked again", worker.unanswered)

    def _give_up(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            self._tell(worker)
            self._refused = dict(worker.refused)
            worker.close()


class IndexLoop(Loop):
    """Drives an index, judging or standing by."""

    def __init__(self, builder: Builder, clock: Clock, metrics: Metrics) -> None:
        super().__init__("index", clock, metrics, builder.alive_s)
        self._builder = builder
        self._index: Index | None = None
        self._stood_by = False
        self._sizes: LogSizes | None = None
        self._seen_at = 0
        self._seen_s = 0.0
        self._moved_from: tuple[int, float] | None = None
        """Bytes and time of the last line on a snapshot that is being read or written."""
        self._pace = Pace(MAX_BLOCKS)
        self._refused = 0
        """Failures of its own in a row."""
        self._aside_s = 0.0
        """The last pause, 0.0 once a decision was recorded."""
        self._aside_until_s: float | None = None
        self._why_aside = ""
        self._say_behind_s = 0.0
        self._is_told_behind = False
        self._set_gauges()

    @property
    def _works_alone(self) -> bool:
        return self._asks_nobody or self._is_aside or (self._index is not None and self._index.judges)

    @property
    def _is_aside(self) -> bool:
        return self._aside_until_s is not None

    @property
    def remark(self) -> str:
        """How far behind it is, or why it does not try."""
        if self._aside_until_s is not None:
            left_s = max(0.0, self._aside_until_s - self._clock.monotonic_s())
            return f"left its group, tries again in {left_s:.0f} s: {self._why_aside}"
        behind_s = self._index.behind_s if self._index is not None and self._index.live else 0.0
        return f"judges what arrived {behind_s:.0f} s ago" if behind_s >= _BEHIND_S else ""

    def _failed(self, error: BrokerError) -> None:
        super()._failed(error)
        index = self._index
        moved_on = isinstance(error.__cause__, MovedOnError) or isinstance(error, MovedOnError)
        if index is None or not index.holds_log or moved_on or not isinstance(error, FatalError):
            return
        self._refused += 1
        if self._refused < _ASIDE_AFTER or not index.step_aside():
            return
        self._aside_s = _ASIDE.after(self._aside_s)
        _log.warning(
            "index: failed %d times in a row here; it leaves its group for %.0f s, so that another process "
            "may judge (%s)",
            *(self._refused, self._aside_s, error),
        )
        self._metrics.asides.inc()
        self._why_aside = str(error)
        self._answered_s = self._clock.monotonic_s()
        self._aside_until_s = self._clock.monotonic_s() + self._aside_s

    def _step(self) -> None:
        if self._aside_until_s is not None:
            if self._clock.monotonic_s() < self._aside_until_s:
                self._stop.wait(_POLL_S)
                return
            self._answered_s = self._clock.monotonic_s()
            self._aside_until_s = None
        index = self._index or self._restored()
        for ruling in index.step(_POLL_S):
            self._metrics.ruled(ruling)
            self._did_its_work()
            self._refused, self._aside_s = 0, 0.0
        self._is_ready = index.ready
        changes = index.phase.changes()
        for phase in changes:
            _log.info("index: %s at block %d", phase, index.state.next_offset)
        if changes or index.log_lines:
            self._set_gauges()
        self._tell(index)

    def _restored(self) -> Index:
        """A new index, with what the newest snapshot holds; reading that may take minutes."""
        try:
            index = self._index = self._builder.index(self._timer, self._moved, self._pace)
        finally:
            if self._asks_nobody:
                self._answered_s = self._clock.monotonic_s()
            self._asks_nobody = False
            self._moved_from = None
            self._metrics.see_restore(None)
        self._seen_at, self._seen_s = index.state.next_offset, self._clock.monotonic_s()
        self._stood_by = False
        return index

    def _moved(self, moved: Moved) -> None:
        """Bytes of a snapshot have moved, and the role waits for all of them."""
        now_s = self._turned_s = self._clock.monotonic_s()
        self._asks_nobody = True
        if moved.doing == "reading":
            self._metrics.see_restore(moved)
            if moved.done == moved.size:
                self._turned_s += _LOAD_S * moved.size / 2**30
        before, before_s = self._moved_from or (moved.done, now_s)
        if self._moved_from is None or now_s - before_s >= _SAY_EVERY_S:
            rate = (moved.done - before) / max(now_s - before_s, 0.001)
            _log.info(
                "index: %s snapshot bytes=%d of=%d rate=%.0f/s left=%s",
                *(moved.doing, moved.done, moved.size, rate, _left_s(moved.size - moved.done, rate)),
            )
            self._moved_from = moved.done, now_s

    def _tell(self, index: Index) -> None:
        """Log and count what the index has noted."""
        for line in index.log_lines:
            _log.info("index: %s", line)
        index.log_lines.clear()
        self._log_notices(index.notices)
        self._metrics.take_judged(index)

    def _set_gauges(self) -> None:
        self._metrics.see_judging(self._index)
        self._see_clock(self._index)

    def _query_lag(self) -> None:
        if self._index is None:
            return
        self._metrics.see_index(self._index)
        if self._index.live:
            self._tell_behind(self._index)
            # One process of an app shows them, the one that judges.
            self._sizes = self._sizes or self._builder.log_sizes()
            sizes = self._sizes.ask()
            if sizes is not None:
                self._metrics.see_log(sizes)
        stood_by, self._stood_by = self._stood_by, self._index.ready and not self._index.live
        # An index that stands by from one query to the next is at work. One query is not enough:
        # a rebalance leaves every member without its share for a moment.
        if stood_by and self._stood_by:
            self._did_its_work()
        if self._index.ready:
            return
        at, end, now_s = (
            self._index.state.next_offset,
            self._index.follower.log_end(),
            self._clock.monotonic_s(),
        )
        rate = (at - self._seen_at) / max(now_s - self._seen_s, 0.001)
        self._seen_at, self._seen_s = at, now_s
        _log.info(
            "index: restoring block=%d of=%d rate=%.0f/s left=%s", at, end, rate, _left_s(end - at, rate)
        )

    def _tell_behind(self, index: Index) -> None:
        """Log now and then how far behind it is, and that it is no more."""
        behind_s, now_s = index.behind_s, self._clock.monotonic_s()
        if behind_s < _BEHIND_S:
            if self._is_told_behind:
                _log.info("index: judges what arrives; nothing waits any more")
            self._is_told_behind = False
        elif not self._is_told_behind or now_s >= self._say_behind_s:
            self._is_told_behind, self._say_behind_s = True, now_s + _SAY_BEHIND_S
            waiting = max(0, index.follower.log_end() - index.state.next_offset)
            _log.warning("index: judges what arrived %.0f s ago; waiting=%d blocks", behind_s, waiting)

    def _finish(self) -> None:
        index = self._index
        if index is not None:
            try:
                index.close()
            except AbortableError as error:
                _log.warning("index: stopped without leaving cleanly (%s); nothing is lost", error)
            self._tell(index)
            self._index = None

    def _give_up(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            self._tell(index)
            index.abandon()


def _left_s(left: int, rate: float) -> str:
    """How long `left` takes, as a log line says it."""
    return f"{left / rate:.0f}s" if rate > 0 else "unknown"


_CHECKS = 4
"""A partition has stalled when this many checks in a row, some seconds apart, find it at one position."""


class StallDetector:
    """Finds partitions that have input, wait for no answer, and do not move.

    >>> detector, at = StallDetector(), Partition("posts", 0)
    >>> [detector.stalled({at: (5, 9)}, waiting=False) for _ in range(4)][-1]
    [Partition(topic='posts', number=0)]
    """

    def __init__(self) -> None:
        self._seen: dict[Partition, tuple[int, int]] = {}

    def stalled(self, progress: Mapping[Partition, tuple[int, int]], *, waiting: bool) -> list[Partition]:
        """Partitions whose position did not move in the last _CHECKS checks, this one included.

        progress: each one's read position and end; waiting: whether answers are awaited
        """
        before = self._seen
        self._seen = {
            at: (position, before[at][1] + 1 if at in before and before[at][0] == position else 1)
            for at, (position, end) in progress.items()
            if position < end and not waiting
        }
        return [at for at, (_, count) in self._seen.items() if count >= _CHECKS]
