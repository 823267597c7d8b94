"""A worker crashes, once at each of its steps, and somebody else moves its offset before it comes back."""

from __future__ import annotations

import pytest

from tests.driver import GROUP, World, crash_at, texts
from twinsieve.pipeline.broker.records import Committed, Partition
from twinsieve.pipeline.worker.config import WorkerStep

pytestmark = pytest.mark.matrix

IN = Partition("in", 0)


@pytest.mark.parametrize("found", [Committed(0), Committed(20), Committed(500), None])
@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("step", WorkerStep)
def test_a_foreign_offset_after_a_crash_loses_and_repeats_nothing(
    step: str, nth: int, found: Committed | None
) -> None:
    world = World(partitions=1)
    world.start("a")
    world.settle()
    world.produce("in", 0, texts(0, 20))
    world.processes[-1].hook = crash_at(step, nth)
    world.run(40)
    world.kill_all()
    world.cluster.tick()
    offsets = world.cluster.group(GROUP).offsets
    offsets.pop(IN, None)
    if found is not None:
        offsets[IN] = found
    world.produce("in", 0, texts(20, 30))
    world.start("a")
    world.settle()
    assert world.stops == []
    assert world.emitted() == list(range(30))
