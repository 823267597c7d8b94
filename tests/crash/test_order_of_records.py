"""What the index makes known, in which order: nothing outlives a crash but what its one transaction committed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.driver import INDEX, World, crash_at, texts
from tests.model.checker import check_all_judged, check_complete, check_output, rebuild
from tests.twins import AtOnce, HashSieve
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.config import IndexStep

pytestmark = pytest.mark.matrix

IN = Partition("in", 0)
BEFORE_COMMIT = [IndexStep.BEGUN, IndexStep.DECIDED, IndexStep.ANSWERED, IndexStep.OFFSETS_SENT]


@pytest.mark.parametrize("step", BEFORE_COMMIT)
@pytest.mark.parametrize("nth", range(1, 8))
def test_a_snapshot_never_holds_what_a_crash_left_uncommitted(
    step: IndexStep, nth: int, tmp_path: Path
) -> None:
    world = World(partitions=1)
    often = replace(INDEX, snapshot_every_s=0.0)
    settings = {"snapshots": str(tmp_path), "index_config": often, "background": AtOnce}
    first = world.start("a", hook=crash_at(step, nth), **settings)
    for start in range(0, 20, 4):
        world.produce("in", 0, [b"t%d" % (number % 7) for number in range(start, start + 4)])
        world.run(6)
    assert not first.running, f"{step} was not reached {nth} times"
    world.clock.sleep(20.0)
    world.start("a", **settings)
    world.produce("in", 0, [b"t1", b"t99"])
    world.settle()
    truth = rebuild(world)
    check_all_judged(world, truth)
    check_complete(world, truth, check_output(world, truth))
    assert not world.stops


@pytest.mark.parametrize("step", [step for step in IndexStep if step is not IndexStep.SNAPSHOT_WRITTEN])
@pytest.mark.parametrize("nth", range(1, 6))
def test_an_answer_never_outlives_a_crash_that_its_decision_does_not(step: IndexStep, nth: int) -> None:
    """The next index judges by another rule: an answer of the first without its decision would be of the old."""
    world = World(partitions=1)
    worker = world.start("w", roles="worker")
    index = world.start("i", roles="index", sieve=lambda: HashSieve(caseless=False), hook=crash_at(step, nth))
    world.produce("in", 0, [b"Abc", b"abc", b"ABC", b"x", b"X"] * 3)
    for _ in range(60):
        world.run(1)
        if not index.running:
            break
    for _ in range(10):
        worker.step()
    index.kill()
    world.start("i", roles="index", sieve=lambda: HashSieve(caseless=True))
    world.settle()
    truth = rebuild(world, judge=False)
    check_complete(world, truth, check_output(world, truth), str.lower)


def test_the_mark_beside_the_offset_is_enough_to_know_what_came_out() -> None:
    """Log and snapshots are gone, and an operator moves the offset to the beginning."""
    world = World(partitions=1)
    world.start("a")
    for start in range(0, 30, 3):
        world.produce("in", 0, texts(start, start + 3))
        world.settle()
    world.kill_all()
    world.trim_log(world.cluster.log(Partition("app.fingerprints", 0)).end - 1)
    world.move_offset(IN, 0)
    world.start("a")
    world.settle()
    came = world.emitted()
    assert came == list(range(30))
