"""An index that is away or slow: workers fill the log once more at most, and what waits comes out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import INDEX, INDEX_GROUP, LOG, OUTPUT, SCHEME, WORKER, Process, World
from tests.model.checker import check_settled
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.wire.block import decode_block

PARTITIONS, PENDING, MORE = 4, 80, 24
CONFIG = replace(WORKER, poll_messages=20, block_bytes=900_000, max_pending=PENDING, answer_s=10.0)


def asked_rows(world: World, first: int = 0) -> int:
    """Rows of all blocks from a log offset on."""
    entries = sorted(world.log_entries().items())
    return sum(len(decode_block(entry.value or b"", SCHEME, "")) for at, entry in entries if at >= first)


def out(world: World) -> int:
    return sum(len(world.cluster.values(OUTPUT, number)) for number in range(PARTITIONS))


def away(seconds: float) -> tuple[World, Process, int]:
    """A worker that had no index for `seconds`, and the log's end when the index went."""
    world = World(partitions=PARTITIONS)
    world.cluster.session_timeout_s = world.cluster.transaction_timeout_s = 1e9
    index = world.start("i", roles="index")
    worker = world.start("w", roles="worker", worker_config=CONFIG)
    world.settle()
    index.kill()
    world.cluster.group(INDEX_GROUP).members.clear()
    world.cluster.group(INDEX_GROUP).generation += 1
    for number in range(PARTITIONS):
        world.produce("in", number, [b"%d %d" % (number, row) for row in range(PENDING + MORE)])
    end = world.cluster.log(LOG).end
    back_s = world.clock.monotonic_s() + seconds
    while world.clock.monotonic_s() < back_s:
        # Long polls, though far shorter than what a worker waits for an answer.
        worker.step(2.0)
    return world, worker, end


def test_an_index_away_for_an_hour_costs_one_extra_copy_of_what_waits() -> None:
    world, _, end = away(3_600.0)
    assert asked_rows(world, end) == PARTITIONS * PENDING, "what waits, once"
    assert world.cluster.log(LOG).end - end < 150
    world.start("j", roles="index")
    check_settled(world)
    assert asked_rows(world, end) <= PARTITIONS * (2 * PENDING + MORE)
    assert out(world) == PARTITIONS * (PENDING + MORE)


@pytest.mark.parametrize("rows_per_s", [4, 12])
def test_an_index_slower_than_the_patience_of_workers_catches_up(rows_per_s: int) -> None:
    """Judging what waits takes 80 s or 27 s, and a worker waits ten seconds for an answer."""
    world, worker, end = away(600.0)
    index = world.start("j", roles="index", index_config=replace(INDEX, max_blocks=1))
    seen = [0]

    def judge(step: str) -> None:
        if step == IndexStep.POLLED and index.index is not None:
            seen[0] = index.index.state.next_offset
        elif step == IndexStep.JUDGED and index.index is not None:
            rows = asked_rows(world, seen[0]) - asked_rows(world, index.index.state.next_offset)
            world.clock.sleep(rows / rows_per_s)

    index.hook = judge
    for _ in range(3_000):
        index.step(0.05)
        for _ in range(6):
            worker.step(0.005)
        if out(world) == PARTITIONS * (PENDING + MORE):
            break
    assert out(world) == PARTITIONS * (PENDING + MORE)
    assert asked_rows(world, end) < 5 * PARTITIONS * (PENDING + MORE)
    check_settled(world)
