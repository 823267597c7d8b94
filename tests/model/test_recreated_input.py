"""An input topic that is deleted and created again under a running worker: nothing of the new one comes out as the old one's."""

from __future__ import annotations

import pytest

from tests.driver import DEAD, DUPLICATES, OUTPUT, World, texts
from twinsieve.pipeline.broker.records import Partition

NEW = [*texts(100, 110), *texts(200, 203), None, b"\xff\xfe", None, b"\xff\xfe"]
"""More than the old topic held, tombstones and what nobody can read among them."""


def recreated(epoch: int = 0) -> World:
    """The worker's position lies inside the new topic already."""
    world = World(partitions=1)
    world.start("a")
    for _ in range(epoch):
        world.cluster.log(Partition("in", 0)).elect()
    world.produce("in", 0, texts(0, 10))
    world.settle()
    if not epoch:
        world.clock.sleep(0.25)
    world.make_again("in", 1)
    world.produce("in", 0, NEW)
    return world


@pytest.mark.parametrize("epoch", [0, 3])
def test_it_is_noticed_before_anything_of_the_new_topic_comes_out(epoch: int) -> None:
    """Where nothing came for a while, or the leaders' epochs go back."""
    world = recreated(epoch)
    for _ in range(200):
        world.run(1)
        if world.stops:
            break
    assert "in[0]: the topic was deleted and created again" in world.stops[0]
    assert world.cluster.values(OUTPUT) == texts(0, 10)
    assert world.cluster.values(DEAD) == world.cluster.values(DUPLICATES) == []


def test_all_of_it_comes_out_once_after_the_reset() -> None:
    world = recreated()
    world.run(200)
    world.kill_all()
    world.stops.clear()
    world.move_offset(Partition("in", 0), 0)
    world.start("a")
    world.settle()
    assert world.cluster.values(OUTPUT) == [*texts(0, 10), *(each for each in NEW if each != b"\xff\xfe")]
    assert world.cluster.values(DEAD) == [b"\xff\xfe", b"\xff\xfe"]
    assert world.cluster.values(DUPLICATES) == []
    assert world.stops == []
