"""The protocol without disturbance: what every interleaving is then held against."""

from __future__ import annotations

from tests.driver import DEAD, DUPLICATES, OUTPUT, World
from tests.model.checker import check_settled


def test_uniques_come_out_once_in_order_and_duplicates_name_their_leader() -> None:
    world = World(partitions=2)
    world.start("a")
    for number in range(2):
        world.produce("in", number, [b"x%d" % (row % 9) for row in range(40)])
    check_settled(world)
    assert sum(len(world.cluster.values(OUTPUT, number)) for number in range(2)) == 9
    assert sum(len(world.cluster.values(DUPLICATES, number)) for number in range(2)) == 71


def test_messages_pass_with_key_headers_timestamp_and_partition() -> None:
    world = World(partitions=2)
    stamp = world.clock.now_ms()
    world.produce("in", 1, [b"one", None, b"\xff"])
    world.start("a")
    world.settle()
    ((_, came), *_) = world.cluster.topics["in"].logs[1].visible()
    (_, entry), (_, tombstone) = world.cluster.topics[OUTPUT].logs[1].visible()
    assert (entry.key, entry.value, entry.timestamp_ms) == (b"k", b"one", stamp)
    assert entry.headers == (*came.headers, ("twinsieve-origin", b"in[1]@0"))
    assert tombstone.value is None
    ((_, dead),) = world.cluster.topics[DEAD].logs[1].visible()
    assert dead.value == b"\xff"
    assert dict(dead.headers)["twinsieve-reason"] == b"not_utf8"
