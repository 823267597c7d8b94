"""After a stall all that waited is answered at once; it goes out in transactions of a bounded size."""

from __future__ import annotations

from collections import Counter

from tests.driver import DUPLICATES, OUTPUT
from tests.model.test_waiting_bytes import judge_what_waits, without_index
from twinsieve.pipeline.broker.records import Partition

_PARTITIONS = 3
_BLOCK_ROWS = 10


def test_a_backlog_goes_out_in_many_transactions_of_all_partitions() -> None:
    world, worker = without_index(
        _PARTITIONS, max_pending=200, max_emitted=20, answer_s=60.0, poll_messages=100
    )
    for number in range(_PARTITIONS):
        world.produce("in", number, [b"%d of %d" % (row % 90, number) for row in range(149)])
    world.run(120)
    assert worker.unanswered > 2 * _PARTITIONS, "it asks, and nobody is there to answer"
    judge_what_waits(world)
    rows: Counter[int] = Counter()
    for topic in (OUTPUT, DUPLICATES):
        for number in range(_PARTITIONS):
            for _, entry in world.cluster.log(Partition(topic, number)).visible():
                rows[id(entry.transaction)] += 1
    assert sum(rows.values()) == 150 * _PARTITIONS
    assert max(rows.values()) < 20 + _PARTITIONS * _BLOCK_ROWS
