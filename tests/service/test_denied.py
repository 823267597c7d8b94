"""A missing permission ends a role that has done nothing yet; one that has worked waits for it to come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.memory.broker import ManualClock
from tests.twins import HashSieve
from twinsieve.pipeline.basics.state_machine import Machine
from twinsieve.pipeline.broker.records import FatalError
from twinsieve.pipeline.index.config import INDEX_WAYS, IndexPhase
from twinsieve.pipeline.saved.store_calls import StoreCalls
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.service.index_loop import IndexLoop
from twinsieve.pipeline.service.loop import Loop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.probe_limits import ALIVE_S
from twinsieve.pipeline.service.worker_loop import WorkerLoop
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.pipeline.worker.waiting import Waits
from twinsieve.stages.contract import Kind


class Scripted(Loop):
    """Does what it is told, step by step, and stops at the end."""

    def __init__(self, *steps: str) -> None:
        clock = ManualClock()
        super().__init__("role", clock, Metrics(clock))
        self._steps: Iterator[str] = iter(steps)
        self.given_up = 0

    def _step(self) -> None:
        step = next(self._steps, "stop")
        if step == "works":
            self._worked()
        elif step == "denied":
            raise FatalError("topic x: not allowed", denied=True)
        elif step == "half a file":
            raise ConfigError(["key.pem: no start line"])
        else:
            self.stop()

    def _set_gauges(self) -> None: ...

    def _query_lag(self) -> None: ...

    def _finish(self) -> None: ...

    def _give_up(self, *, leaves: bool = False) -> None:
        self.given_up += 1


def test_a_role_that_was_never_allowed_ends_with_the_message() -> None:
    with pytest.raises(FatalError, match="topic x: not allowed"):
        Scripted("denied").run()


def test_a_role_that_has_worked_waits_for_its_permission() -> None:
    role = Scripted("works", "denied", "denied", "works")
    role.run()
    assert role.given_up == 3, "new clients after each refusal, and the end"


def test_a_file_that_cannot_be_used_ends_a_start_and_nothing_that_has_worked() -> None:
    """Somebody is replacing it."""
    with pytest.raises(ConfigError, match="no start line"):
        Scripted("half a file").run()
    Scripted("works", "half a file", "half a file", "works").run()


class _Scripts:
    """In place of a builder: an index that does what it is told; a lag query follows every step.

    steps: "shareless" polls and has no share, "finished" needs new clients, "denied"
    """

    def __init__(self, *steps: str) -> None:
        self._steps = iter(steps)
        self._clock = ManualClock()
        self.loop = IndexLoop(cast(Builder, self), self._clock, Metrics(self._clock))
        self.given_up = 0

    alive_s = ALIVE_S
    calls = StoreCalls()

    def index(self, *_: object) -> Any:
        return SimpleNamespace(
            state=SimpleNamespace(next_offset=0, sieve=HashSieve()),
            phase=Machine(INDEX_WAYS, IndexPhase.RESTORING),
            ready=True,
            live=False,
            answers=None,
            unanswered=[],
            late={},
            holds_log=False,
            judges=False,
            follower=SimpleNamespace(log_end=lambda: 0),
            snapshots=SimpleNamespace(
                since_s=None,
                stored_ms=None,
                took_s=None,
                failures=0,
                bytes_written=0,
                waiting_segments=0,
                take_segment_failures=lambda: 0,
            ),
            disk=SimpleNamespace(unwritten=0, paused_ms=None, is_full=False, remark=""),
            stays_out=False,
            take_gaps=lambda: 0,
            unjudged=0,
            sessions=0,
            given_up=Counter(),
            rebalances=0,
            rules_changes=0,
            notices=[],
            log_lines=[],
            clocks=SimpleNamespace(ahead_s=None),
            step=self._step,
            abandon=self._abandon,
            close=self._abandon,
        )

    def _step(self, _: float) -> list[object]:
        step = next(self._steps, "stop")
        self._clock.sleep(20.0)
        if step == "denied":
            raise FatalError("topic x: not allowed", denied=True)
        if step == "finished":
            raise FatalError("decisions could not be written; restoring")
        if step == "stop":
            self.loop.stop()
        return []

    def _abandon(self, *, leaves: bool = False) -> None:
        self.given_up += 1


def test_an_index_between_two_shares_has_not_worked() -> None:
    scripts = _Scripts("shareless", "finished", "shareless", "finished", "shareless", "denied")
    with pytest.raises(FatalError, match="topic x: not allowed"):
        scripts.loop.run()


def test_an_index_that_stood_by_waits_for_its_permission() -> None:
    scripts = _Scripts("shareless", "shareless", "denied", "shareless")
    scripts.loop.run()
    assert scripts.given_up == 2, "new clients after the refusal, and the end"


class _Asking:
    """In place of a builder: a worker with some answered blocks, one each round, and one that nobody answers."""

    def __init__(self, answered: int, *, index_failed: bool) -> None:
        self.clock = ManualClock()
        self.left = answered
        metrics = Metrics(self.clock)
        index = IndexLoop(cast(Builder, self), self.clock, metrics)
        if index_failed:
            index.error = FatalError("transaction app.index: not allowed", denied=True)
        self.loop = WorkerLoop(cast(Builder, self), self.clock, metrics, index=index)

    alive_s = ALIVE_S
    calls = StoreCalls()
    job = "seed"  # compares no settings with those of the index

    def worker(self, _: object) -> Any:
        return SimpleNamespace(
            ready=True,
            idle=False,
            unanswered=1,
            assigned=1,
            is_member=True,
            waits=Waits(self.clock),
            pending_bytes=0,
            pending_rows={},
            refused={},
            clocks=SimpleNamespace(ahead_s=None),
            reader=SimpleNamespace(keyless=0, bad_times=0),
            notices=[],
            not_understood="",
            foreign_offsets=0,
            resyncs=0,
            trimmed=0,
            skipped=0,
            read=0,
            rebalances=0,
            step=self._step,
            finish=self._finish,
            close=lambda *, leaves: None,
        )

    def _step(self, _: float) -> Emission:
        self.loop.stop()
        return Emission()

    def _finish(self, seconds: float) -> Emission:
        self.clock.sleep(seconds)
        emission = Emission()
        if self.left:
            self.left -= 1
            emission.kinds[Kind.UNIQUE] = 1
        return emission


def test_a_worker_whose_index_has_failed_emits_what_is_answered_and_ends() -> None:
    asking = _Asking(5, index_failed=True)
    began_s = asking.clock.monotonic_s()
    asking.loop.run()
    assert asking.left == 0
    assert asking.clock.monotonic_s() - began_s < 1.0, "of the clock that the loop is given"


def test_a_worker_whose_index_is_well_waits_for_its_answers() -> None:
    asking = _Asking(5, index_failed=False)
    began_s = asking.clock.monotonic_s()
    asking.loop.run()
    assert asking.clock.monotonic_s() - began_s >= 20.0
