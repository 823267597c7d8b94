"""After a stall all that waited is answered at once; it goes out in transactions of a bounded size."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.driver import DUPLICATES, OUTPUT, WORKER, World
from tests.model.checker import check_all_judged, check_complete, check_output, rebuild
from twinsieve.pipeline.broker.records import Partition

_PARTITIONS = 3
_BLOCK_ROWS = 10


def test_a_backlog_goes_out_in_many_transactions_of_all_partitions() -> None:
    world = World(partitions=_PARTITIONS)
    bounded = replace(WORKER, max_pending=200, max_emitted=20, answer_s=60.0, poll_messages=100)
    worker = world.start("a", roles="worker", worker_config=bounded)
    index = world.start("b", roles="index")
    for number in range(_PARTITIONS):
        world.produce("in", number, [b"first of %d" % number])
    world.settle()
    index.kill()
    for number in range(_PARTITIONS):
        world.produce("in", number, [b"%d of %d" % (row % 90, number) for row in range(149)])
    world.run(120)
    assert worker.worker is not None
    assert worker.worker.unanswered > 2 * _PARTITIONS, "it asks, and nobody is there to answer"
    heir = world.start("c", roles="index")
    for _ in range(60):
        heir.step(0.01)
    world.settle()
    rows: Counter[int] = Counter()
    for topic in (OUTPUT, DUPLICATES):
        for number in range(_PARTITIONS):
            for _, entry in world.cluster.log(Partition(topic, number)).visible():
                rows[id(entry.transaction)] += 1
    assert sum(rows.values()) == 150 * _PARTITIONS
    assert max(rows.values()) < 20 + _PARTITIONS * _BLOCK_ROWS
    truth = rebuild(world)
    check_all_judged(world, truth)
    check_complete(world, truth, check_output(world, truth))
