"""The verdicts topic may get partitions, or be made again with fewer: what cannot be answered is asked again."""

from __future__ import annotations

import pytest

from tests.driver import INDEX, OUTPUT, VERDICTS, World, texts
from tests.memory.broker import MemoryBroker
from twinsieve.pipeline.index.watched_topics import InternalTopics


def produce(world: World) -> None:
    for number in range(4):
        world.produce("in", number, texts(10 * number, 10 * number + 5))


def world_with_blocks_that_wait() -> World:
    """No index is up, and blocks wait in the log whose answers go to both partitions of the verdicts topic."""
    world = World(partitions=4)
    world.start("w", roles="worker")
    produce(world)
    world.run(20)
    return world


def all_out(world: World) -> None:
    for number in range(4):
        assert world.cluster.values(OUTPUT, number) == texts(10 * number, 10 * number + 5)
    assert not world.stops


@pytest.mark.parametrize("partitions", [1, 3])
def test_blocks_that_name_a_partition_that_is_no_more_are_asked_again(partitions: int) -> None:
    world = world_with_blocks_that_wait()
    world.kill_all()
    world.make_again(VERDICTS, partitions)
    process = world.start("a")
    world.settle()
    all_out(world)
    assert not [notice for notice in process.notices if "decisions could not be written" in notice]


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_worker_that_waited_asks_for_answers_where_they_can_come(partitions: int) -> None:
    world = world_with_blocks_that_wait()
    world.make_again(VERDICTS, partitions)
    world.start("a", roles="index")
    world.settle()
    all_out(world)


def test_partitions_that_are_added_are_answered_on_at_once() -> None:
    world = World(partitions=4)
    world.start("a", roles="index")
    world.run(20)
    world.cluster.add_partitions(VERDICTS, 4)
    produce(world)
    process = world.start("w", roles="worker")
    world.settle()
    all_out(world)
    assert not [notice for notice in process.notices if "no answer" in notice]
    assert all(len(log.entries) for log in world.cluster.topics[VERDICTS].logs)


def test_a_number_that_no_topic_has_is_not_written_to() -> None:
    """A block of another version may name any."""
    world = World(partitions=1)
    topics = InternalTopics(MemoryBroker(world.cluster).admin(), world.clock, [VERDICTS], 1.0)
    assert topics.unreachable(VERDICTS, [-1, 0, 1, 2, 1_000_000_000]) == {-1, 2, 1_000_000_000}


def test_made_again_with_fewer_under_a_busy_index_stops_it_all_the_same() -> None:
    world = World(partitions=4)
    process = world.start("a")
    world.run(20)
    world.make_again(VERDICTS, 1)
    produce(world)
    began_s = world.clock.monotonic_s()
    for _ in range(2_000):
        if not process.running:
            break
        world.run(1)
    assert f"topic {VERDICTS} was deleted and created again" in world.stops[0]
    assert world.clock.monotonic_s() - began_s < INDEX.check_s + 1.0
