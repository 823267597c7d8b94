"""A step of the index is bounded in blocks, bytes and time, and one that was refused is taken smaller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.driver import DECISIONS, INDEX, LOG, OUTPUT, WORKER, Process, World, log_offset, texts
from tests.twins import HashSieve
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.wire.block import decode_block
from twinsieve.stages.contract import Batch, Verdicts
from twinsieve.stages.near.answers import NO_ANSWERS, Answer
from twinsieve.stages.window.segments import SegmentId


def slow(world: World, row_s: float) -> Callable[[], HashSieve]:
    """Sieves that take `row_s` for a row."""

    class Slow(HashSieve):
        def judge(self, batch: Batch, *, answers: Mapping[SegmentId, Answer] = NO_ANSWERS) -> Verdicts:
            world.clock.sleep(row_s * len(batch))
            return super().judge(batch, answers=answers)

    return Slow


def restores(world: World) -> list[str]:
    return [notice for process in world.processes for notice in process.notices if "restoring" in notice]


def steps(process: Process) -> list[int]:
    """How many blocks each transaction of the index has held, as it goes on."""
    counted: list[int] = []
    before = process.hook

    def hook(step: str) -> None:
        before(step)
        if step == IndexStep.COMMITTED:
            counted.append(len(process.world.decision_entries()))

    process.hook = hook
    return counted


@pytest.mark.parametrize("row_s", [0.5, 0.8])
def test_judging_that_takes_long_is_recorded_in_time_and_never_done_again(row_s: float) -> None:
    world = World(partitions=3)
    for number in range(3):
        world.produce("in", number, texts(100 * number, 100 * number + 40))
    index = replace(INDEX, max_blocks=32)
    worker = replace(WORKER, max_pending=500, answer_s=600.0)
    for slot in "ab":
        world.start(slot, sieve=slow(world, row_s), index_config=index, worker_config=worker)
    world.settle()
    assert sum(len(world.cluster.values(OUTPUT, number)) for number in range(3)) == 120
    assert not restores(world)


def backlog(**index: object) -> tuple[World, Process]:
    """A process whose worker has asked about 200 messages, and whose index has not begun to judge them."""
    world = World(partitions=1)
    config = replace(INDEX, max_blocks=32, **index)  # type: ignore[arg-type]
    asks = replace(WORKER, max_pending=500, answer_s=600.0)
    process = world.start("a", worker_config=asks, index_config=config)
    world.run(10)
    process.roles = "worker"
    world.produce("in", 0, texts(0, 200))
    world.run(60)
    process.roles = "both"
    assert world.cluster.log(LOG).end > 20
    return world, process


def test_a_step_holds_as_many_bytes_as_it_may() -> None:
    world, process = backlog(max_step_bytes=1)
    ends = steps(process)
    world.settle()
    assert {after - before for before, after in pairwise(ends)} <= {0, 1}
    assert world.cluster.values(OUTPUT) == texts(0, 200)


def test_a_refused_transaction_is_followed_by_a_smaller_one() -> None:
    world, _ = backlog()
    tried: list[int] = []

    def refuses(transactional_id: str, count: int) -> bool:
        if transactional_id != INDEX.transactional_id or not count:
            return False
        tried.append(count)
        return count > 8

    world.cluster.faults.refuses_commit = refuses
    world.settle()
    assert world.cluster.values(OUTPUT) == texts(0, 200)
    refused = [count for count in tried if count > 8]
    assert refused[:2] == sorted(refused[:2], reverse=True)
    assert len(refused) <= 4, "it does not try the same again and again"
    offsets = [log_offset(entry) for _, entry in world.cluster.log(DECISIONS).visible()]
    assert offsets == sorted(set(offsets)), "each block is decided once"


def test_after_a_refusal_more_is_taken_again() -> None:
    world = World(partitions=1)
    process = world.start("a", index_config=replace(INDEX, max_blocks=32))
    world.run(10)
    refusals = [True]
    world.cluster.faults.refuses_commit = lambda name, count: bool(
        name == INDEX.transactional_id and count and refusals and refusals.pop()
    )
    world.produce("in", 0, texts(0, 20))
    world.settle()
    assert not refusals
    assert process.pace.blocks < 32
    for first in range(20, 400, 20):
        world.produce("in", 0, texts(first, first + 20))
        world.settle()
    assert process.pace.blocks == 32


def test_an_index_that_is_slow_is_given_the_time_it_needs() -> None:
    world = World(partitions=6)
    for number in range(6):
        world.produce("in", number, texts(1_000 * number, 1_000 * number + 40))
    world.cluster.session_timeout_s = 60.0
    world.start("a", sieve=slow(world, 0.5), worker_config=replace(WORKER, answer_s=4.0))
    world.settle()
    asked = sum(
        len(decode_block(entry.value or b"", INDEX.scheme, "log"))
        for _, entry in world.cluster.log(LOG).visible()
    )
    assert asked == 240, "nothing is asked for twice while its answer is on its way"
    assert sum(len(world.cluster.values(OUTPUT, number)) for number in range(6)) == 240
