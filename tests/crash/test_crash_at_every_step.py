"""Every named step of both roles: a crash there, a rebalance there, a stop there while others take over.

After each the deployment settles, and the checker finds nothing lost, nothing doubled, nothing stuck.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.driver import GROUP, INDEX, INDEX_GROUP, JSON_READER, NO_TEXTS, Process, World, post
from tests.memory.broker import CrashError
from tests.model.checker import check_all_judged, check_complete, check_output, rebuild
from tests.model.raw import check_world
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.worker.config import WorkerStep

pytestmark = pytest.mark.matrix

STEPS: list[str] = [*WorkerStep, *IndexStep]
_OCCURRENCES = {1: (1, 4), 2: (1, 2, 4), 3: (2,)}
"""At which times a step is disturbed that comes again and again, by the number of processes."""
_ONCE = {IndexStep.RESTORED, WorkerStep.OPENED}
"""Passed once in the life of a process that nothing disturbs."""
_PARTS = 3


def occurrences(step: str, count: int) -> tuple[int, ...]:
    """At which times a step is disturbed.

    >>> occurrences(WorkerStep.OPENED, 2), occurrences(IndexStep.JUDGED, 2)
    ((1,), (1, 2, 4))
    """
    return (1,) if step in _ONCE else _OCCURRENCES[count]


class Trap:
    """A hook that does something at the n-th call of one step, once."""

    def __init__(self, step: str, occurrence: int, act: Callable[[], None]) -> None:
        self.step = step
        self.left = occurrence
        self.act = act
        self.sprung = False

    def __call__(self, step: str) -> None:
        if step == self.step and not self.sprung:
            self.left -= 1
            if self.left <= 0:
                self.sprung = True
                self.act()


def crash() -> None:
    raise CrashError("crash")


class Deployment:
    """Some processes over two partitions, with snapshots after every step of the index."""

    def __init__(self, count: int, folder: Path) -> None:
        self.world = World(partitions=2, reader=JSON_READER)
        self.folder = folder
        self.count = count
        self.produced = 0
        for slot in range(count):
            self.start(f"slot-{slot}")

    def start(self, slot: str) -> Process:
        index = replace(INDEX, snapshot_every_s=0.0)
        return self.world.start(slot, snapshots=str(self.folder), index_config=index)

    def feed(self) -> None:
        """A few messages more, some of them seen before, two without a text."""
        for partition in range(2):
            values = [post(f"t{(self.produced + row) % 23}") for row in range(9)]
            values[3], values[7] = NO_TEXTS
            self.world.produce("in", partition, values)
        self.produced += 5

    def run_until(self, done: Callable[[], bool], rounds: int = 250) -> None:
        for turn in range(rounds):
            if done():
                return
            if turn % 8 == 0 and self.produced < 60:
                self.feed()
            self.world.run(1)

    def spring(self, process: Process, trap: Trap) -> None:
        """Runs until the process has come to the step of the trap."""
        process.hook = trap
        self.run_until(lambda: trap.sprung)
        assert trap.sprung, f"{trap.step} was never reached"

    def restart_dead(self) -> None:
        for slot in (f"slot-{number}" for number in range(self.count)):
            if not any(process.running and process.slot == slot for process in self.world.processes):
                self.start(slot)

    def check(self) -> None:
        self.feed()
        self.world.settle(tend=self.restart_dead)
        truth = rebuild(self.world)
        fates = check_output(self.world, truth)
        check_complete(self.world, truth, fates)
        check_all_judged(self.world, truth)
        check_world(self.world)
        assert not self.world.stops, self.world.stops


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_loses_nothing(step: str, count: int, tmp_path: Path) -> None:
    for occurrence in occurrences(step, count):
        deployment = Deployment(count, tmp_path / str(occurrence))
        deployment.spring(deployment.world.processes[0], Trap(step, occurrence, crash))
        deployment.check()


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("step", STEPS)
def test_a_rebalance_loses_nothing(step: str, count: int, tmp_path: Path) -> None:
    for occurrence in occurrences(step, count):
        deployment = Deployment(count, tmp_path / str(occurrence))
        cluster = deployment.world.cluster

        def rebalance() -> None:
            cluster.group(GROUP).rebalance()  # noqa: B023 (called in this turn)
            cluster.group(INDEX_GROUP).rebalance()  # noqa: B023

        deployment.spring(deployment.world.processes[0], Trap(step, occurrence, rebalance))
        deployment.check()


@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_stops_while_others_take_over_loses_nothing(step: str, tmp_path: Path) -> None:
    """SIGSTOP in the middle of a step; when it goes on, its partitions have long been another's."""
    for occurrence in occurrences(step, 2):
        deployment = Deployment(2, tmp_path / str(occurrence))
        stopped, other = deployment.world.processes

        def stand_still() -> None:
            deployment.world.clock.sleep(9.0)  # noqa: B023 (called in this turn)
            for _ in range(40):
                other.step()  # noqa: B023

        deployment.spring(stopped, Trap(step, occurrence, stand_still))
        deployment.check()


@pytest.mark.parametrize("step", STEPS)
def test_a_process_whose_slot_is_taken_loses_nothing(step: str, tmp_path: Path) -> None:
    """A second process starts in the slot of one that stands still; the older one must give way."""
    for occurrence in occurrences(step, 1):
        deployment = Deployment(1, tmp_path / str(occurrence))
        (stopped,) = deployment.world.processes

        def take_slot() -> None:
            newer = deployment.start("slot-0")  # noqa: B023 (called in this turn)
            for _ in range(40):
                newer.step()

        deployment.spring(stopped, Trap(step, occurrence, take_slot))
        deployment.check()
        assert not stopped.running, "the older process of a slot goes on"


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.minutes) for n in (1, 2))])
@pytest.mark.parametrize("first", STEPS)
def test_two_crashes_lose_nothing(first: str, part: int, tmp_path: Path) -> None:
    """Every pair of steps: one process crashes at the first, the other, alone then, at the second.

    part: of three, in each of which every step comes first and comes second
    """
    for second in STEPS[(STEPS.index(first) + part) % _PARTS :: _PARTS]:
        deployment = Deployment(2, tmp_path / second)
        one, two = deployment.world.processes
        trap, later = Trap(first, 1, crash), Trap(second, 1, crash)
        one.hook = trap
        deployment.run_until(lambda: trap.sprung)  # noqa: B023
        two.hook = later
        deployment.run_until(lambda: later.sprung)  # noqa: B023
        assert trap.sprung, f"{first} was never reached"
        if not later.sprung:
            # What was left to do needed no such step; the next messages do.
            deployment.feed()
            deployment.run_until(lambda: later.sprung)  # noqa: B023
        assert later.sprung or second in _ONCE, f"{second} was never reached after {first}"
        deployment.check()
