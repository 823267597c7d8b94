"""Hundreds of partitions with a message or two each: their blocks are taken together."""

from __future__ import annotations

from dataclasses import replace

from tests.driver import INDEX, OUTPUT, WORKER, World
from twinsieve.pipeline.index.config import MAX_BLOCKS, IndexStep
from twinsieve.pipeline.worker.config import WorkerStep

PARTITIONS = 120


def test_the_transactions_of_the_index_do_not_grow_with_the_partitions() -> None:
    world = World(partitions=PARTITIONS)
    steps: list[str] = []
    worker = replace(WORKER, poll_messages=10_000, max_emitted=10_000)
    world.start(
        "a", worker_config=worker, index_config=replace(INDEX, max_blocks=MAX_BLOCKS), hook=steps.append
    )
    world.settle()
    steps.clear()
    for number in range(PARTITIONS):
        world.produce("in", number, [b"text %d" % number, b"more %d" % number])
    world.settle()
    assert sum(len(world.emitted(OUTPUT, number)) for number in range(PARTITIONS)) >= 2 * PARTITIONS
    assert steps.count(WorkerStep.APPENDED) == 1, "blocks of all partitions together"
    judged = steps.count(IndexStep.JUDGED)
    assert judged <= 4, "one for the messages, one for the reports of what came out"
