"""Offsets that somebody puts back belong to the topic that they were committed for."""

from __future__ import annotations

from tests.driver import GROUP, OUTPUT, World


def test_offsets_of_a_deleted_topic_are_not_those_of_its_successor() -> None:
    world = World(partitions=1)
    world.produce("in", 0, [b"a", b"b", b"c"])
    world.start("a")
    world.settle()
    world.kill_all()
    offsets = dict(world.cluster.group(GROUP).offsets)
    world.make_again("in", 1)
    world.produce("in", 0, [b"d", b"e", b"f", b"g", b"h"])
    world.cluster.group(GROUP).offsets.update(offsets)
    again = world.start("a")
    world.run(80)
    assert not again.running
    assert "deleted and created again" in world.stops[0]
    assert "twinsieve reset" in world.stops[0]
    assert world.cluster.values(OUTPUT) == [b"a", b"b", b"c"]
