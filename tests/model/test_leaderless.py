"""A partition without a leader delays only the input partitions that need it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import LOG, OUTPUT, VERDICTS, WORKER, Process, World
from tests.model.checker import check_all_judged, check_complete, check_output, rebuild
from twinsieve.pipeline.memory_clients import MemoryReader
from twinsieve.pipeline.ports import AbortableError, Partition

DEAD_INPUT = Partition("in", 2)


def world_of_three() -> World:
    """Nothing expires: a client that waits for a leader lets the clock of all run."""
    world = World(partitions=3)
    world.cluster.session_timeout_s = world.cluster.transaction_timeout_s = 1e9
    return world


def post(world: World, first: int, count: int = 10) -> None:
    for number in range(3):
        world.produce("in", number, [b"%d %d" % (number, row) for row in range(first, first + count)])


def out(world: World) -> list[int]:
    """Messages that came out, by partition."""
    return [len(world.cluster.values(OUTPUT, number)) for number in range(3)]


def settled_well(world: World) -> None:
    """All leaders are back: nothing is lost, nothing comes twice."""
    world.cluster.faults.leaderless.clear()
    world.settle()
    truth = rebuild(world)
    check_all_judged(world, truth)
    check_complete(world, truth, check_output(world, truth))
    assert world.stops == []


def run_s(world: World, seconds: float) -> None:
    end_s = world.clock.monotonic_s() + seconds
    while world.clock.monotonic_s() < end_s:
        world.run(1)


def test_an_input_partition_without_a_leader_keeps_no_other_from_opening() -> None:
    world = world_of_three()
    world.cluster.faults.leaderless.add(DEAD_INPUT)
    post(world, 0)
    process = world.start("a")
    run_s(world, 10.0)
    assert out(world) == [10, 10, 0]
    assert process.worker is not None
    assert (process.worker.held, process.worker.ready) == (1, True)
    assert "in[2]: no leader; what needs it waits" in process.notices
    settled_well(world)
    assert process.worker.held == 0


def test_offsets_that_nobody_tells_keep_no_other_partition_from_opening(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The topic's description names a leader, but questions about the offsets have no answer."""
    silent = {DEAD_INPUT}
    for name in ("beginning_offsets", "end_offsets"):
        ask = getattr(MemoryReader, name)

        def asked(self: MemoryReader, partitions: set[Partition], ask: object = ask) -> object:
            if silent & set(partitions):
                self._cluster.clock.sleep(10.0)
                raise AbortableError(f"offsets of {partitions}: no answer")
            return ask(self, partitions)  # type: ignore[operator]

        monkeypatch.setattr(MemoryReader, name, asked)
    world = world_of_three()
    post(world, 0)
    world.start("a")
    run_s(world, 40.0)
    assert out(world) == [10, 10, 0]
    silent.clear()
    settled_well(world)


def test_a_verdict_partition_without_a_leader_delays_the_partitions_that_are_answered_there() -> None:
    world = world_of_three()
    process = world.start("a")
    world.run(20)
    world.cluster.faults.leaderless.add(Partition(VERDICTS, 0))
    for first in range(0, 50, 10):
        post(world, first)
        run_s(world, 30.0)
    assert out(world)[1] == 50, "in[1] is answered on the other partition"
    assert process.index is not None
    assert process.index.live
    assert process.worker is not None
    assert process.worker.held == 2
    settled_well(world)


def test_a_log_without_a_leader_is_said_and_waited_for() -> None:
    world = world_of_three()
    process = world.start("a")
    world.run(20)
    world.cluster.faults.leaderless.add(LOG)
    post(world, 0)
    run_s(world, 120.0)
    assert out(world) == [0, 0, 0]
    assert any("app.fingerprints[0]: no leader" in notice for notice in process.notices)
    assert process.running
    settled_well(world)


def test_blocks_are_not_asked_again_and_again_while_verdicts_have_no_leader() -> None:
    world = world_of_three()
    config = replace(WORKER, most_pending=500, poll_messages=100, block_bytes=100_000)
    process = Process(world, "a", worker_config=config)
    world.processes.append(process)
    world.run(20)
    world.cluster.faults.leaderless.add(Partition(VERDICTS, 0))
    post(world, 0)
    run_s(world, 200.0)
    before = world.cluster.log(LOG).end
    run_s(world, 600.0)
    assert world.cluster.log(LOG).end - before < 60, "idle reports of one partition alone"
    settled_well(world)
