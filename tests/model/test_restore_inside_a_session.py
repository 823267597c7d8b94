"""A restore that begins in the middle of a session: the block that opened it is no longer in the log."""

from __future__ import annotations

from tests.driver import DUPLICATES, GROUP, OUTPUT, World, texts
from twinsieve.pipeline.broker.records import Partition

IN = Partition("in", 0)


def cut_inside_a_session() -> World:
    """A world whose log begins behind the block that opened its only session; every process was killed."""
    world = World(partitions=1)
    world.start("a")
    for first in range(0, 40, 4):
        world.produce("in", 0, texts(first, first + 4))
        world.settle()
    world.trim_log(6)
    world.kill_all()
    return world


def test_a_leader_is_named_by_its_topic_after_a_restore_inside_a_session() -> None:
    world = cut_inside_a_session()
    world.start("a")
    world.produce("in", 0, [b"text 30", b"text 31"])
    world.settle()
    entries = [entry for _, entry in world.cluster.log(Partition(DUPLICATES, 0)).visible()]
    leaders = [dict(entry.headers)["twinsieve-leader"] for entry in entries]
    assert leaders == [b"in[0]@30", b"in[0]@31"]


def test_a_topic_created_again_is_noticed_after_a_restore_inside_a_session() -> None:
    world = cut_inside_a_session()
    world.start("a")
    world.run(100)
    world.kill_all()
    before = world.cluster.values(OUTPUT)
    world.make_again("in", 1)
    world.cluster.group(GROUP).offsets.pop(IN, None)
    world.produce("in", 0, [b"other"])
    world.start("a")
    world.run(100)
    assert any("created again" in stop for stop in world.stops), world.stops
    assert world.cluster.values(OUTPUT) == before
