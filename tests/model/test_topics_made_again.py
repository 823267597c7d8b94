"""Topics that are deleted and made again, in every combination, while messages are judged and not emitted; judged from the
raw topics alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest

from tests.driver import DEAD, DECISIONS, DUPLICATES, INDEX, LOG, OUTPUT, VERDICTS, World, crash_at
from tests.model.raw import Raw, check_world, missing_texts
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.worker.config import WorkerStep

COUNT = 2
OUTPUTS = (OUTPUT, DUPLICATES, DEAD)
INTERNAL = {LOG.topic: 1, DECISIONS.topic: 1, VERDICTS: 2}
TEXTS = [f"text {number}" for number in range(12)]


def subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [each for size in range(1, len(names) + 1) for each in combinations(names, size)]


def write(world: World, partitions: int, shift: int) -> None:
    """Every text, two of them twice, and a message that is no text; `shift`: under other keys."""
    for row, text in enumerate([*TEXTS, *TEXTS[:2]]):
        world.produce("in", (row + shift) % partitions, [text.encode()])
    world.produce("in", shift % partitions, [b"\xff\xfe", None])


def judged_not_emitted() -> World:
    """All was asked for and judged; the worker died in its transaction."""
    world = World(partitions=COUNT)
    process = world.start("a")
    world.produce("in", 0, [b"first"])
    world.settle()
    process.hook = crash_at(WorkerStep.SENT, 1)
    write(world, COUNT, 0)
    while process.running:
        world.run(1)
    world.start("i", roles="index")
    world.run(30)
    world.kill_all()
    return world


def begin_again(world: World, name: str) -> None:
    for number in range(len(world.cluster.topics[name].logs)):
        world.move_offset(Partition(name, number), 0)


def check_then_write_all_again(world: World) -> None:
    """What is there now is as promised, and so are copies of it in calm."""
    world.settle()
    check_world(world, in_order=False)
    world.clock.sleep(1.0)
    write(world, len(world.cluster.topics["in"].logs), 1)
    world.settle()
    assert not missing_texts(Raw(world), TEXTS)
    check_world(world, in_order=False)
    assert not world.stops


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("outputs", [(), *subsets(OUTPUTS)], ids=lambda names: "+".join(names) or "no output")
@pytest.mark.parametrize("partitions", [None, 1, 2, 4])
def test_whatever_stands_comes_out_or_has_a_leader_that_came_out(
    partitions: int | None, outputs: tuple[str, ...], *, compacted: bool
) -> None:
    """partitions: of the input that is made again, None where it stays; the same messages come under other keys."""
    world = judged_not_emitted()
    if compacted:
        for number in range(COUNT):
            held = [offset for offset, _ in world.cluster.log(Partition("in", number)).visible()]
            world.compact(Partition("in", number), held[1:4])
    for name in outputs:
        world.make_again(name, 3)
    if partitions is not None:
        world.make_again("in", partitions)
        write(world, partitions, 1)
        begin_again(world, "in")
    world.start("a")
    check_then_write_all_again(world)


@pytest.mark.parametrize("outputs", subsets(OUTPUTS), ids="+".join)
@pytest.mark.parametrize("partitions", [1, 2, 4])
def test_outputs_may_be_made_again_under_a_running_app(partitions: int, outputs: tuple[str, ...]) -> None:
    world = World(partitions=COUNT)
    world.start("a")
    world.settle()
    write(world, COUNT, 0)
    world.run(2)
    for name in outputs:
        world.make_again(name, partitions)
    check_then_write_all_again(world)


@pytest.mark.parametrize("partitions", [1, 2, 4])
@pytest.mark.parametrize("rounds", [1, 3, 8, 40])
def test_an_input_made_again_under_a_running_app_loses_nothing(partitions: int, rounds: int) -> None:
    """Every process stops by and by; an operator says that the new topic is read from its beginning. Within the second
    between two looks at the ids of topics some of it may come out twice."""
    world = World(partitions=COUNT)
    world.start("a")
    world.settle()
    write(world, COUNT, 0)
    world.run(rounds)
    world.make_again("in", partitions)
    world.clock.sleep(2.0)
    write(world, partitions, 1)
    for _ in range(200):
        world.run(1)
    assert all("in[" in stop and "twinsieve reset" in stop for stop in world.stops)
    world.kill_all()
    world.stops.clear()
    begin_again(world, "in")
    world.start("a")
    check_then_write_all_again(world)


@pytest.mark.parametrize("names", subsets(list(INTERNAL)), ids="+".join)
@pytest.mark.parametrize("with_input", [False, True])
def test_internal_topics_made_again_stop_every_process_with_an_index(
    names: tuple[str, ...], *, with_input: bool
) -> None:
    world = World(partitions=COUNT)
    processes = [world.start("a"), world.start("b"), world.start("i", roles="index")]
    write(world, COUNT, 0)
    world.settle()
    emitted = len(world.emitted())
    for name in names:
        world.make_again(name, INTERNAL[name])
    if with_input:
        world.make_again("in", COUNT)
        write(world, COUNT, 1)
    began_s = world.clock.monotonic_s()
    while any(process.running for process in processes) and world.clock.monotonic_s() - began_s < 60.0:
        world.run(1)
    assert not any(process.running for process in processes)
    assert len(world.stops) == len(processes)
    said = [stop for stop in world.stops if any(name in stop for name in names)]
    assert len(said) >= len(processes) - 2 * with_input, world.stops
    assert world.clock.monotonic_s() - began_s < 3 * INDEX.check_s + 2.0
    assert len(world.emitted()) == emitted, "nothing is judged on a guess"
