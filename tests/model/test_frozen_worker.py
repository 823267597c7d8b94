"""A worker that was frozen before its start block arrived is no reason to say that data was lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import GROUP, WORKER, World, texts
from tests.model.checker import check_settled, rebuild
from twinsieve.pipeline.broker.records import AbortableError, Partition
from twinsieve.pipeline.wire.ruling import Result
from twinsieve.pipeline.worker.answers import RefusedError


class Scene:
    """Two workers and an index; `a` freezes for 9 s before its start block, and again before its answer is
    read, so that the answer comes before the group says that it was put out."""

    def __init__(self, *, new: bool) -> None:
        self.world = world = World(partitions=2)
        self.index = world.start("i", roles="index")
        world.run(5)
        for number in range(2):
            world.produce("in", number, texts(10 * number, 10 * number + 10))
        config = replace(WORKER, poll_messages=500)
        self.frozen = world.start("a", roles="worker", worker_config=config)
        if not new:
            world.settle()
        self.other = world.start("b", roles="worker", worker_config=config)
        self._new = new
        self._calls = 0
        if not new:
            world.cluster.group(GROUP).rebalance()
        self.frozen.hook = self._freeze

    def _freeze(self, step: str) -> None:
        if step == "appender.append.before" and self._calls == 0:
            self._calls = 1
            self.world.clock.sleep(9.0)
            if not self._new:
                self.world.produce("in", 0, texts(20, 30))
                self.world.produce("in", 1, texts(30, 40))
            self._others(80)
        elif step == "reader.poll.before" and self._calls == 1:
            self._calls = 2
            self._others(15)

    def _others(self, rounds: int) -> None:
        for _ in range(rounds):
            for process in (self.index, self.other):
                process.step()


@pytest.mark.parametrize("new", [True, False])
def test_a_frozen_worker_proves_its_membership_before_it_reports_a_loss(*, new: bool) -> None:
    scene = Scene(new=new)
    world = scene.world
    world.run(40)
    truth = rebuild(world)
    refused = Result.OFFSETS_MISSING if new else Result.SHORTENED
    assert refused in {ruling.result for ruling in truth.rulings}, "the scene came about"
    assert world.stops == []
    assert scene.frozen.running
    check_settled(world)


def test_a_replaced_worker_does_not_believe_a_second_refusal() -> None:
    """A client may go on polling for a while before it hears of the rebalance."""
    world = World(partitions=1)
    process = world.start("a")
    world.produce("in", 0, texts(0, 3))
    world.settle()
    worker = process.worker
    assert worker is not None
    membership = worker._polled.membership
    worker._doubted.add(Partition("in", 0))
    refusal = RefusedError(Partition("in", 0), Result.SHORTENED)
    with pytest.raises(RefusedError):
        worker._doubt(refusal, membership)
    world.cluster.group(GROUP).rebalance()
    with pytest.raises(AbortableError):
        worker._doubt(refusal, membership)
