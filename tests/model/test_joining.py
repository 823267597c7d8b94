"""What an index reads and when it joins: nothing twice, and not before it could judge soon."""

from __future__ import annotations

from typing import Any

import pytest

from tests.driver import DECISIONS, Process, World
from tests.memory.consumer import MemoryConsumer
from tests.model.checker import check_settled
from twinsieve.pipeline.index import follower as index_restore
from twinsieve.pipeline.index import index


def _judging(world: World) -> list[Process]:
    return [each for each in world.processes if each.running and each.index is not None and each.index.live]


def _busy_world(messages: int) -> World:
    """A process that has judged `messages` messages, in blocks of one each."""
    world = World(partitions=1)
    world.start("b")
    for number in range(messages):
        world.produce("in", 0, [b"text %d" % number])
        world.settle()
    return world


def test_a_warm_standby_reads_no_decision_twice_when_it_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _busy_world(5)
    world.start("c")
    for number in range(40):
        world.produce("in", 0, [b"more %d" % number])
        world.settle()
    world.run(20)
    decoded = []
    decode = index_restore.decode_ruling

    def counted(*args: Any) -> Any:
        decoded.append(args)
        return decode(*args)

    monkeypatch.setattr(index_restore, "decode_ruling", counted)
    world.processes[0].kill()
    world.produce("in", 0, [b"one more"])
    check_settled(world)
    assert _judging(world) == [world.processes[1]]
    assert len(decoded) <= 3, "the standby was up with all of them"


def test_a_newcomer_far_behind_leaves_the_log_to_who_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _busy_world(60)
    # Real clients give the log to whose name sorts first, as soon as it has joined.
    monkeypatch.setattr(index, "_JOIN_WHEN_LAG_BELOW", 6)
    monkeypatch.setattr(index, "_AT_ONCE", 1)
    newcomer = world.start("a")
    behind = []
    while newcomer.index is None or newcomer.index._consumer is None:
        world.run(1)
        assert newcomer.index is not None
        behind.append(world.cluster.log(DECISIONS).end - newcomer.index.follower.decisions_at)
        assert _judging(world) == [world.processes[0]]
        assert not (newcomer.index._consumer is None and newcomer.index.ready)
    assert len(behind) > 5
    assert behind == sorted(behind, reverse=True)
    assert behind[-1] <= 6
    world.processes[0].kill()
    world.produce("in", 0, [b"text 3", b"new"])
    check_settled(world)
    assert _judging(world) == [newcomer]


def test_a_live_index_reads_on_from_where_it_was_after_a_rebalance() -> None:
    world = _busy_world(80)
    assert world.processes[0].index is not None
    at = world.processes[0].index.follower.decisions_at
    assert at > world.cluster.log(DECISIONS).end / 2
    world.start("a")
    world.produce("in", 0, [b"text 3", b"new"])
    check_settled(world)


def test_an_index_that_is_still_joining_does_not_stand_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryConsumer, "_heartbeat", lambda _: False)
    world = World(partitions=1)
    joining = world.start("a", roles="index")
    world.run(10)
    assert joining.index is not None
    assert joining.index._consumer is not None
    assert not joining.index.ready
    monkeypatch.undo()
    world.run(10)
    assert joining.index.live
