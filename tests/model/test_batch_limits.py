"""What outputs, log, decisions and answers take is a limit on batches: roles tell their producers their topics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import DECISIONS, DUPLICATES, INDEX, LOG, OUTPUT, VERDICTS, WORKER, World, texts
from tests.model.checker import check_settled

_MANY = 600
_LARGE_WORKER = replace(
    WORKER, poll_messages=500, block_bytes=9_000, max_pending=5_000, max_emitted=20_000, answer_s=60.0
)


def world_with(limits: dict[str, int]) -> World:
    world = World(partitions=1)
    set_limits(world, limits)
    world.start("a", worker_config=_LARGE_WORKER, index_config=replace(INDEX, max_blocks=32))
    return world


def set_limits(world: World, limits: dict[str, int]) -> None:
    for topic, most in limits.items():
        world.cluster.topics[topic].settings["max.message.bytes"] = str(most)


def refusals(world: World) -> list[str]:
    return [notice for process in world.processes for notice in process.notices if "TOO_LARGE" in notice]


@pytest.mark.parametrize(
    ("topic", "limit"),
    [(OUTPUT, 400), (DUPLICATES, 400), (LOG.topic, 12_000), (DECISIONS.topic, 2_000), (VERDICTS, 2_000)],
)
def test_a_backlog_comes_out_and_nothing_is_refused(topic: str, limit: int) -> None:
    world = world_with({topic: limit})
    world.produce("in", 0, [*texts(0, _MANY), *texts(0, _MANY)])
    world.settle()
    assert len(world.cluster.values(OUTPUT)) == len(world.cluster.values(DUPLICATES)) == _MANY
    assert not refusals(world)


def test_processes_with_small_and_large_blocks_work_side_by_side() -> None:
    world = World(partitions=2)
    for member, block_bytes in (("a", 1_200), ("b", 200_000)):
        world.start(member, worker_config=replace(_LARGE_WORKER, block_bytes=block_bytes), index_config=INDEX)
    for number in range(2):
        world.produce("in", number, texts(0, _MANY))
    world.run(20)
    index_before = next(process for process in world.processes if process.index is not None)
    index_before.kill()
    for number in range(2):
        world.produce("in", number, [*texts(0, _MANY), *texts(_MANY, 2 * _MANY)])
    world.settle()
    check_settled(world)
    assert not refusals(world)
    assert max(len(block or b"") for block in world.cluster.values(LOG.topic)) > 12_000


def test_a_limit_that_is_lowered_refuses_one_transaction() -> None:
    world = world_with({})
    world.run(5)
    set_limits(world, {OUTPUT: 400})
    world.produce("in", 0, texts(0, _MANY))
    world.settle()
    assert world.cluster.values(OUTPUT) == texts(0, _MANY)
    assert len(refusals(world)) == 1
