"""A broker that was killed while it ended a transaction, and never tells the group of the end."""

from __future__ import annotations

import pytest

from tests.driver import GROUP, INDEX_GROUP, LOG, World
from tests.memory.broker import CrashError
from tests.memory.log import Outcome
from tests.model.checker import check_settled
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.worker.config import WorkerStep

IN = Partition("in", 0)


def forgotten(step: str, transactional_id: str, outcome: Outcome) -> World:
    """The third transaction ends like this, the process dies, and another one has caught up."""
    world = World(partitions=1)
    world.produce("in", 0, [b"text %d" % number for number in range(60)])
    passed = 0

    def hook(at: str) -> None:
        nonlocal passed
        passed += at == step
        if at == step and passed == 3:
            world.cluster.forget_end(transactional_id, outcome)
            raise CrashError("crash")

    first = world.start("a", hook=hook)
    world.run(200)
    assert not first.running
    group, partition = (INDEX_GROUP, LOG) if "index" in transactional_id else (GROUP, IN)
    assert (group, partition) in world.cluster.unstable_offsets()
    world.clock.sleep(20.0)
    world.start("a")
    world.settle()
    assert (group, partition) not in world.cluster.unstable_offsets()
    return world


@pytest.mark.parametrize(
    ("step", "transactional_id", "outcome"),
    [
        (WorkerStep.OFFSETS_SENT, "app-worker-a", Outcome.ABORTED),
        (IndexStep.OFFSETS_SENT, "app-index", Outcome.ABORTED),
        (IndexStep.OFFSETS_SENT, "app-index", Outcome.COMMITTED),
    ],
)
def test_its_offset_is_freed_and_nothing_is_lost_or_doubled(
    step: str, transactional_id: str, outcome: Outcome
) -> None:
    world = forgotten(step, transactional_id, outcome)
    check_settled(world)


def test_messages_shown_without_their_offset_come_again_and_none_is_lost() -> None:
    world = forgotten(WorkerStep.OFFSETS_SENT, "app-worker-a", Outcome.COMMITTED)
    came = world.emitted()
    again = [number for number in set(came) if came.count(number) > 1]
    assert set(came) == set(range(60))
    assert 0 < len(again) < 60
    assert all(came.count(number) == 2 for number in again)
