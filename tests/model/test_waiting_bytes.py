"""One setting bounds the memory of all originals that wait, however many partitions a worker has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import WORKER, World
from tests.model.checker import check_all_judged, check_complete, check_output, rebuild

_MAX_BYTES = 60_000
_VALUE = b"%d of %d, and much more of the same" + b"." * 400
_POLL = 5
_ONE_POLL = _POLL * 1_000


@pytest.mark.parametrize("partitions", [1, 6])
def test_waiting_originals_of_all_partitions_stay_within_one_bound(partitions: int) -> None:
    world = World(partitions=partitions)
    bounded = replace(
        WORKER, max_pending=10_000, max_pending_bytes=_MAX_BYTES, poll_messages=_POLL, answer_s=600.0
    )
    process = world.start("a", roles="worker", worker_config=bounded)
    index = world.start("b", roles="index")
    for number in range(partitions):
        world.produce("in", number, [b"first of %d" % number])
    world.settle()
    index.kill()
    for number in range(partitions):
        world.produce("in", number, [_VALUE % (row, number) for row in range(120)])
    world.run(400)
    worker = process.worker
    assert worker is not None
    held = worker.pending_bytes
    assert _MAX_BYTES <= held < _MAX_BYTES + partitions * _ONE_POLL
    assert len(worker.pending_rows) == partitions
    assert min(worker.pending_rows.values()) > 0, "each has its share"
    heir = world.start("c", roles="index")
    for _ in range(60):
        heir.step(0.01)
    world.settle()
    truth = rebuild(world)
    check_all_judged(world, truth)
    check_complete(world, truth, check_output(world, truth))
