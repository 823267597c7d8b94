"""What the output does not take is known before it is judged, so that it leads nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import DEAD, DUPLICATES, LOG, OUTPUT, WORKER, World, origin_of, texts
from twinsieve.pipeline.broker.records import Partition

_LONG = b"k" * 2_000


def world_of(*, dead_letter: str | None = DEAD) -> World:
    world = World(partitions=1)
    world.cluster.topics[OUTPUT].settings["max.message.bytes"] = "1000"
    config = replace(WORKER, emit=replace(WORKER.emit, dead_letter=dead_letter))
    world.start("a", worker_config=config)
    return world


def reasons(world: World) -> list[tuple[bytes | None, bytes | None]]:
    log = world.cluster.log(Partition(DEAD, 0))
    return [(entry.value, dict(entry.headers)["twinsieve-reason"]) for _, entry in log.visible()]


@pytest.mark.parametrize("dead_letter", [DEAD, None])
def test_a_copy_that_can_be_written_comes_out_though_the_first_could_not(dead_letter: str | None) -> None:
    world = world_of(dead_letter=dead_letter)
    world.produce("in", 0, [b"x", None], _LONG)
    world.produce("in", 0, [b"x", b"x"])
    world.settle()
    assert world.cluster.values(OUTPUT) == [b"x"]
    assert world.cluster.values(DUPLICATES) == [b"x"]
    ((_, duplicate),) = world.cluster.log(Partition(DUPLICATES, 0)).visible()
    assert dict(duplicate.headers)["twinsieve-leader"] == b"in[0]@2"
    refused = (b"x", b"too_large_for_topic"), (None, b"too_large_for_topic")
    assert reasons(world) == (list(refused) if dead_letter else [])


def test_a_limit_that_falls_between_judging_and_writing_makes_a_dead_letter() -> None:
    world = world_of()
    world.cluster.topics[OUTPUT].settings["max.message.bytes"] = "10000"
    process = world.processes[0]
    world.run(10)
    world.produce("in", 0, [b"x", b"y"], _LONG)
    world.produce("in", 0, [b"z"])
    process.step()
    assert process.worker is not None
    assert process.worker.unanswered
    world.cluster.topics[OUTPUT].settings["max.message.bytes"] = "1000"
    before = world.cluster.log(LOG).end
    world.settle()
    assert world.cluster.values(OUTPUT) == [b"z"]
    assert [value for value, _ in reasons(world)] == [b"x", b"y"]
    assert world.cluster.log(LOG).end - before < 20


@pytest.mark.parametrize("bounds", [{"block_bytes": 600}, {"max_emitted": 2}])
def test_what_is_refused_in_a_later_block_of_a_poll_is_buried_alone(bounds: dict[str, int]) -> None:
    world = World(partitions=1, other={DEAD: 3})
    world.cluster.topics[OUTPUT].settings["max.message.bytes"] = "50"
    world.start("a", worker_config=replace(WORKER, **bounds))  # type: ignore[arg-type]
    world.produce("in", 0, [*texts(0, 4), b"x" * 60, b"\xff", *texts(4, 5)])
    world.settle()
    assert world.emitted() == [0, 1, 2, 3, 6]
    buried = [entry for log in world.cluster.topics[DEAD].logs for _, entry in log.visible()]
    why = {origin_of(entry)[2]: dict(entry.headers)["twinsieve-reason"] for entry in buried}
    assert why == {4: b"too_large_for_topic", 5: b"not_utf8"}
