"""One setting bounds the memory of all originals that wait, however many partitions a worker has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import OUTPUT, WORKER, World
from tests.model.checker import check_settled
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.worker.worker import Worker

_MAX_BYTES = 60_000
_VALUE = b"%d of %d, and much more of the same" + b"." * 400
_POLL = 5
_ONE_POLL = _POLL * 1_000


def without_index(partitions: int, **bounds: float) -> tuple[World, Worker]:
    """A worker with these bounds, whose index was killed behind the first message of each partition."""
    world = World(partitions=partitions)
    bounded = replace(WORKER, **{"poll_messages": _POLL, "answer_s": 600.0} | bounds)  # type: ignore[arg-type]
    process = world.start("a", roles="worker", worker_config=bounded)
    index = world.start("b", roles="index")
    for number in range(partitions):
        world.produce("in", number, [b"first of %d" % number])
    world.settle()
    index.kill()
    assert process.worker is not None
    return world, process.worker


def judge_what_waits(world: World) -> None:
    heir = world.start("c", roles="index")
    for _ in range(60):
        heir.step(0.01)
    check_settled(world)


@pytest.mark.parametrize("partitions", [1, 6])
def test_waiting_originals_of_all_partitions_stay_within_one_bound(partitions: int) -> None:
    world, worker = without_index(partitions, max_pending=10_000, max_pending_bytes=_MAX_BYTES)
    for number in range(partitions):
        world.produce("in", number, [_VALUE % (row, number) for row in range(120)])
    world.run(400)
    assert _MAX_BYTES <= worker.pending_bytes < _MAX_BYTES + partitions * _ONE_POLL
    assert len(worker.pending_rows) == partitions
    assert min(worker.pending_rows.values()) > 0, "each has its share"
    judge_what_waits(world)


_LARGE = 9_000
"""A poll of these is more than four of six shares."""
_ONE = _LARGE + 1_000


def large(count: int, number: int, size: int = _LARGE) -> list[bytes | None]:
    return [b"%d of %d " % (row, number) + b"x" * size for row in range(count)]


@pytest.mark.parametrize(("room", "pending", "count"), [(_MAX_BYTES, 10_000, 20), (2 * _ONE, 20, 9)])
def test_polls_of_more_than_a_share_do_not_add_up(room: int, pending: int, count: int) -> None:
    """Many messages, and messages of which two take all the room."""
    world, worker = without_index(6, max_pending=pending, max_pending_bytes=room)
    for number in range(6):
        # A poll of its own.
        world.produce("in", number, large(count, number))
        world.run(30)
    assert worker.pending_bytes < room + max(room // 4 + _ONE, _POLL * _ONE)
    judge_what_waits(world)


def test_a_partition_goes_on_where_others_hold_all_the_room() -> None:
    partitions = 4
    world = World(partitions=partitions)
    world.cluster.session_timeout_s = world.cluster.transaction_timeout_s = 1e9
    bounded = replace(WORKER, max_pending_bytes=_MAX_BYTES, poll_messages=_POLL, answer_s=600.0)
    blocked = {Partition(OUTPUT, number) for number in range(1, partitions)}
    world.cluster.faults.leaderless |= blocked
    world.start("a", worker_config=bounded)
    for number in range(1, partitions):
        world.produce("in", number, large(30, number, 4_500))
    world.run(200)
    process = world.processes[0]
    assert process.worker is not None
    assert process.worker.pending_bytes > _MAX_BYTES - 5_000, "two of its messages are too much"
    world.produce("in", 0, large(30, 0, 2_400))
    world.run(400)
    assert world.emitted(OUTPUT, 0) == list(range(30))
    assert process.worker.pending_bytes < _MAX_BYTES + max(_MAX_BYTES // 4 + _ONE, _POLL * _ONE)
    world.cluster.faults.leaderless.clear()
    world.settle()
    assert [len(world.cluster.values(OUTPUT, number)) for number in range(partitions)] == [30] * partitions
