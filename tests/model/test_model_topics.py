"""Several input topics: which partition of an output each message goes to, and in what order."""

from __future__ import annotations

from dataclasses import replace

from tests.driver import DEAD, DUPLICATES, OUTPUT, WORKER, World, origin_of
from tests.memory.log import Entry
from tests.model.checker import check_settled

COUNT = 4
KAFKA_HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""murmur2 of these keys, from Kafka's own tests (org.apache.kafka.common.utils.UtilsTest)."""


def world_of(**more: int) -> World:
    """Topic `in` with as many partitions as the outputs, and others."""
    world = World(COUNT, ("in", *more), more)
    config = replace(WORKER, topics=("in", *more))
    for slot in ("a", "b"):
        world.start(slot, worker_config=config)
    world.run(10)
    return world


def came_out(world: World, topic: str) -> list[tuple[int, Entry]]:
    """Messages of an output topic with the number of the partition they are in."""
    logs = world.cluster.topics[topic].logs
    return [(number, entry) for number, log in enumerate(logs) for _, entry in log.visible()]


def test_where_counts_agree_a_message_keeps_its_number_whatever_its_key() -> None:
    world = world_of(more=COUNT)
    for topic in ("in", "more"):
        for number in range(COUNT):
            for row, key in enumerate([*KAFKA_HASHES, None]):
                world.produce(topic, number, [b"%s %d %d" % (topic.encode(), number, row), b"\xff"], key)
    world.produce("more", 3, [b"in 1 0"], b"21")
    check_settled(world)
    uniques, dead = came_out(world, OUTPUT), came_out(world, DEAD)
    assert len(uniques) == len(dead) == 2 * COUNT * 7
    assert all(number == origin_of(entry)[1] for number, entry in [*uniques, *dead])
    ((number, duplicate),) = came_out(world, DUPLICATES)
    assert (number, origin_of(duplicate)) == (3, ("more", 3, 14))
    assert dict(duplicate.headers)["twinsieve-leader"] == b"in[1]@0"


def test_where_counts_differ_messages_go_by_key_in_the_order_they_came() -> None:
    world = world_of(fewer=2, more=7)
    rounds = 12
    for row in range(rounds):
        for place, key in enumerate(KAFKA_HASHES):
            for topic, number in (("fewer", place % 2), ("more", place)):
                text = b"%s %s %d" % (topic.encode(), key, row)
                world.produce(topic, number, [text, b"\xff"], key)
                world.produce("in", place % COUNT, [b"in " + text], key)
        world.run(3)
    for place, key in enumerate(KAFKA_HASHES):
        world.produce("more", place, [b"fewer %s %d" % (key, row) for row in range(rounds)], key)
    check_settled(world)
    expected = {key: (value & 0x7FFFFFFF) % COUNT for key, value in KAFKA_HASHES.items()}
    assert len(set(expected.values())) == COUNT
    for topic in (OUTPUT, DUPLICATES, DEAD):
        by_key = [(number, entry) for number, entry in came_out(world, topic) if origin_of(entry)[0] != "in"]
        assert {(entry.key, number) for number, entry in by_key} == set(expected.items())
    for name in ("fewer", "more"):
        for key, number in expected.items():
            log = world.cluster.topics[OUTPUT].logs[number]
            values = [entry.value for _, entry in log.visible() if entry.key == key]
            ours = [value for value in values if value is not None and value.startswith(name.encode())]
            assert ours == [b"%s %s %d" % (name.encode(), key, row) for row in range(rounds)]


def test_messages_without_key_come_out_once_wherever_that_is() -> None:
    world = world_of(more=7)
    for number in range(7):
        world.produce("more", number, [b"text %d %d" % (number, row) for row in range(20)], None)
    world.produce("more", 0, [b"text 6 1"], None)
    check_settled(world)
    uniques = sorted(origin_of(entry) for _, entry in came_out(world, OUTPUT))
    assert uniques == [("more", number, row) for number in range(7) for row in range(20)]
    assert all(entry.key is None for _, entry in came_out(world, OUTPUT))
    assert [origin_of(entry) for _, entry in came_out(world, DUPLICATES)] == [("more", 0, 20)]


def test_a_worker_that_runs_on_sees_that_counts_agree_again() -> None:
    world = world_of()
    world.produce("in", 0, [b"before"], b"abc")
    world.settle()
    for topic in (OUTPUT, DUPLICATES, DEAD, "in"):
        world.cluster.add_partitions(topic, COUNT + 1)
    world.produce("in", COUNT, [b"after"], b"abc")
    check_settled(world)
    assert world.cluster.values(OUTPUT, COUNT) == [b"after"]
