"""`input.start: latest` skips what is older than the app, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import DEAD, DUPLICATES, GROUP, INDEX_GROUP, OUTPUT, WORKER, World, texts
from tests.memory.broker import CrashError
from tests.model.checker import check_complete, check_output, rebuild
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.worker.config import WorkerStep

LATEST = replace(WORKER, start="latest")


def out(world: World, number: int = 0) -> list[bytes | None]:
    return world.cluster.values(OUTPUT, number)


def well(world: World) -> None:
    truth = rebuild(world)
    check_complete(world, truth, check_output(world, truth))
    assert world.stops == []


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


def test_partitions_that_another_worker_opens_later_begin_at_the_end_as_the_first_did() -> None:
    """The second process comes when the group knows the topic already, and the partition it gets is old."""
    world = World(partitions=2)
    for number in range(2):
        world.produce("in", number, texts(100 * number, 100 * number + 10))
    first = world.start("a", worker_config=LATEST)
    # in[1] has no leader while the first process begins.
    world.cluster.faults.leaderless.add(Partition("in", 1))
    world.run(30)
    assert world.cluster.group(GROUP).offsets.keys() == {Partition("in", 0)}
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
def test_whoever_takes_over_from_a_session_that_had_no_answer_yet_begins_where_it_did(
    step: str, times: int
) -> None:
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
    process.kill()
    world.clock.sleep(20.0)
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
        world.cluster.group(group).offsets.clear()
    world.produce("in", 0, texts(10, 20))
    world.start("a", worker_config=LATEST)
    world.run(100)
    assert len(world.stops) == 1
    assert "the group's offset is gone" in world.stops[0]
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
