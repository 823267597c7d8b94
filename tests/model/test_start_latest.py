"""`input.start: latest` skips what is older than the app, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from tests.driver import (
    DEAD,
    DUPLICATES,
    GROUP,
    INDEX_GROUP,
    LOG,
    OUTPUT,
    VERDICTS,
    WORKER,
    Process,
    World,
    texts,
)
from tests.memory.broker import CrashError
from tests.model.checker import check_complete, check_output, rebuild
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import AbortableError, Messages, Partition
from twinsieve.pipeline.worker.config import WorkerStep

LATEST = replace(WORKER, start="latest")
LONG_S = 2 * 86_400.0
"""Longer than producers hold messages back, and than the clock of a process is taken to be wrong."""


def out(world: World, number: int = 0) -> list[bytes | None]:
    return world.cluster.values(OUTPUT, number)


def well(world: World) -> None:
    truth = rebuild(world)
    check_complete(world, truth, check_output(world, truth))
    assert world.stops == []


def old_world(count: int = 10) -> World:
    """Two partitions with so many messages each, all older than what producers hold back."""
    world = World(partitions=2)
    for number in range(2):
        world.produce("in", number, texts(100 * number, 100 * number + count))
    world.clock.sleep(LONG_S)
    return world


def test_a_partition_that_is_added_later_begins_at_its_beginning() -> None:
    world = World(partitions=1)
    world.produce("in", 0, texts(0, 10))
    world.start("a", worker_config=LATEST)
    world.settle()
    world.produce("in", 0, texts(10, 20))
    world.settle()
    for topic in (OUTPUT, DUPLICATES, DEAD, "in"):
        world.cluster.add_partitions(topic, 2)
    world.produce("in", 1, texts(50, 60))
    world.settle()
    assert (out(world), out(world, 1)) == (texts(10, 20), texts(50, 60))
    well(world)


def test_partitions_that_another_worker_opens_later_begin_at_the_same_end() -> None:
    """The second process comes when the group knows the topic already, and the partition it gets is old."""
    world = old_world()
    first = world.start("a", worker_config=LATEST)
    # in[1] has no leader while the first process begins.
    world.cluster.faults.leaderless.add(Partition("in", 1))
    world.run(30)
    first.kill()
    world.cluster.faults.leaderless.clear()
    world.start("b", worker_config=LATEST)
    world.settle()
    world.produce("in", 1, texts(200, 210))
    world.settle()
    assert (out(world), out(world, 1)) == ([], texts(200, 210))
    well(world)


@pytest.mark.parametrize("step", [WorkerStep.COMMITTED, WorkerStep.OPENED, WorkerStep.OFFSETS_SENT])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_who_takes_over_an_unanswered_session_begins_where_it_did(step: str, times: int) -> None:
    world = World(partitions=1)
    world.produce("in", 0, texts(0, 10))
    process = world.start("a", worker_config=LATEST)
    left = [times]

    def kill(at: str) -> None:
        if at == step:
            left[0] -= 1
            if not left[0]:
                raise CrashError

    process.hook = kill
    for _ in range(15):
        world.run(1)
    came_between = texts(10, 20)
    begun = bool(world.cluster.group(GROUP).offsets)
    world.produce("in", 0, came_between)
    world.kill_all()
    world.start("b", worker_config=LATEST)
    world.settle()
    world.produce("in", 0, texts(20, 30))
    world.settle()
    assert out(world) == [*(came_between if begun else []), *texts(20, 30)]
    well(world)


@pytest.mark.parametrize("judged", [0, 5])
def test_offsets_that_were_forgotten_stop_and_skip_nothing(judged: int) -> None:
    world = World(partitions=1)
    process = world.start("a", worker_config=LATEST)
    world.settle()
    world.produce("in", 0, texts(0, judged))
    world.settle()
    world.run(50)
    process.kill()
    world.clock.sleep(8 * 86_400.0)
    for group in (GROUP, INDEX_GROUP):
        world.forget_offsets(group)
    world.produce("in", 0, texts(10, 20))
    world.start("a", worker_config=LATEST)
    world.run(100)
    assert len(world.stops) == 1
    assert "the consumer group has no offset that twinsieve committed" in world.stops[0]
    assert "twinsieve reset" in world.stops[0]
    assert out(world) == texts(0, judged)
    # It stays so until somebody says where to begin.
    world.clock.sleep(20.0)
    world.start("a", worker_config=LATEST)
    world.run(100)
    assert len(world.stops) == 2
    world.clock.sleep(20.0)
    world.move_offset(Partition("in", 0), 0)
    world.start("a", worker_config=LATEST)
    world.settle()
    assert out(world) == [*texts(0, judged), *texts(10, 20)]


NOT_LED = {
    "its own leader": Partition("in", 1),
    "that of its answers": Partition(VERDICTS, 1),
    "the log's": LOG,
}


@pytest.mark.parametrize("dead", NOT_LED.values(), ids=list(NOT_LED))
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("ahead_s", [-7_200.0, 0.0, 7_200.0])
def test_what_is_written_to_a_partition_that_could_not_begin_is_for_the_app(
    dead: Partition, ahead_s: float, restarted: bool
) -> None:
    """Producers hold their messages back while it has no leader, and write them as soon as it has one again."""
    world = old_world(3)
    world.cluster.faults.leaderless.add(dead)
    world.start("a", worker_config=LATEST, ahead_s=ahead_s)
    world.run(40)
    world.produce("in", 0, texts(3, 6))
    stamp_ms = world.clock.now_ms() - 60_000
    world.run(200)
    if restarted:
        world.kill_all()
        world.start("a", worker_config=LATEST, ahead_s=ahead_s)
    world.cluster.faults.leaderless.clear()
    held_back = Messages()
    for value in texts(103, 113):
        held_back.add(b"k", value, (), stamp_ms)
    world.cluster.write(Partition("in", 1), held_back)
    world.settle()
    world.produce("in", 1, texts(113, 116))
    world.settle()
    assert (out(world), out(world, 1)) == (texts(3, 6), texts(103, 116))
    well(world)


@pytest.mark.parametrize("reset", [0, 1])
def test_a_grown_topic_with_forgotten_offsets_is_not_begun_at_its_end(reset: int) -> None:
    """Whatever is reset after the stop, no partition skips what was never judged."""
    world = World(partitions=1)
    process = world.start("a", worker_config=LATEST)
    world.run(20)
    world.produce("in", 0, texts(0, 5))
    world.settle()
    process.kill()
    world.clock.sleep(8 * 86_400.0)
    world.forget_offsets()
    for topic in ("in", OUTPUT, DUPLICATES, DEAD):
        world.cluster.add_partitions(topic, 2)
    world.produce("in", 1, texts(10, 20))
    world.produce("in", 0, texts(5, 8))
    stopped = 0
    for number in (reset, 1 - reset):
        world.start("a", worker_config=LATEST)
        world.run(200)
        if len(world.stops) == stopped:
            break
        stopped = len(world.stops)
        assert "the consumer group has no offset that twinsieve committed" in world.stops[-1]
        world.kill_all()
        world.move_offset(Partition("in", number), 0)
    else:
        world.start("a", worker_config=LATEST)
    assert stopped
    world.settle()
    assert (out(world), out(world, 1)) == (texts(0, 8), texts(10, 20))


def share_of(process: Process) -> frozenset[Partition]:
    return process.worker._polled.assignment if process.worker is not None else frozenset()


@pytest.mark.parametrize("step", [WorkerStep.BEGUN, WorkerStep.COMMITTED])
def test_two_processes_that_begin_with_an_unknown_topic_do_not_stop(
    step: str,
) -> None:
    """One has read that the group knows no partition, and stands still until messages of the other are judged."""
    world = old_world()
    world.start("index", roles="index")
    world.run(20)
    late = world.start("b", worker_config=LATEST, roles="worker")
    other = world.start("a", worker_config=LATEST, roles="worker")
    seen: list[str] = []

    def wait(at: str) -> None:
        if at == WorkerStep.POLLED and "stalled" not in seen:
            raise AbortableError("it is slow")

    def stall(at: str) -> None:
        seen.append(at)
        if at == WorkerStep.POLLED and seen.count(at) == 1:
            world.run(5)  # the other one joins the group: each has its share
        if at == step and len(share_of(late)) == 1 and "stalled" not in seen:
            seen.append("stalled")
            world.run(15)
            for number in range(2):
                world.produce("in", number, texts(100 * number + 10, 100 * number + 13))
            world.run(15)

    late.hook, other.hook = stall, wait
    world.settle()
    assert "stalled" in seen
    assert [notice for notice in late.notices if "checking once more" in notice]
    assert (out(world), out(world, 1)) == (texts(10, 13), texts(110, 113))
    well(world)


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_partition_that_waited_for_its_leader_may_be_reset(start: Literal["earliest", "latest"]) -> None:
    world = old_world()
    world.cluster.faults.leaderless.add(Partition("in", 1))
    world.start("a", worker_config=LATEST)
    world.run(40)
    world.kill_all()
    world.cluster.faults.leaderless.clear()
    if start == "latest":
        world.move_offset(Partition("in", 1), 5)
    world.start("a", worker_config=replace(WORKER, start=start))
    world.settle()
    assert out(world, 1) == (texts(105, 110) if start == "latest" else texts(100, 110))
    well(world)


def test_a_topic_that_is_taken_in_later_begins_at_its_end() -> None:
    world = World(partitions=1)
    process = world.start("a", worker_config=LATEST)
    world.settle()
    process.kill()
    world.cluster.create(NewTopic("more", 1))
    world.topic_ids["more"] = {world.cluster.topics["more"].topic_id}
    world.produce("more", 0, texts(0, 10))
    world.clock.sleep(20.0)
    world.start("a", worker_config=replace(LATEST, topics=("in", "more")))
    world.settle()
    world.produce("more", 0, texts(10, 20))
    world.settle()
    assert out(world) == texts(10, 20)
    well(world)
