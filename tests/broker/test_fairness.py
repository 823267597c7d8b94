"""A backlog in one partition does not hold back the few messages of another, for either kind of consumer."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.broker.worlds import World, assigned, fresh, make_topic, reader_at, until, write
from twinsieve.pipeline.broker.records import Partition, Records

BACKLOG, FEW = 4_000, 5
_BYTES = 10_000
"""Of random bytes, which compression does not shrink: a client fetches 8 MiB of a partition at once, and one or
two such fetches may be on their way before it asks for another partition. The backlog is five of them."""
_AT_ONCE = 200

Poll = Callable[[], list[Records]]


def backlog_and_few(world: World) -> tuple[Partition, Partition]:
    """A partition with much to read and another with little, both written before anybody reads."""
    broker = world.broker()
    topic = make_topic(broker, 2)
    large, small = Partition(topic, 0), Partition(topic, 1)
    dice = random.Random(1)
    write(broker, large, [dice.randbytes(_BYTES) for _ in range(BACKLOG)])
    write(broker, small, [b"live"] * FEW)
    return large, small


def read_before(poll: Poll, large: Partition, small: Partition) -> int:
    """Messages of the backlog that came before the last of the few."""
    seen = {large: 0, small: 0}

    def all_few() -> bool:
        for records in poll():
            seen[records.partition] += len(records)
        return seen[small] == FEW

    until(all_few)
    return seen[large]


def test_a_reader_brings_the_few_long_before_the_backlog_ends(world: World) -> None:
    large, small = backlog_and_few(world)
    reader = reader_at(world.broker(), large, small)
    assert read_before(lambda: reader.poll(0.1, _AT_ONCE), large, small) < BACKLOG / 2


def test_a_group_member_brings_the_few_long_before_the_backlog_ends(world: World) -> None:
    large, small = backlog_and_few(world)
    consumer = world.broker().group_consumer(fresh("g"), [large.topic])
    assigned(consumer, 2)
    for partition in (large, small):
        consumer.seek(partition, 0)
    assert read_before(lambda: consumer.poll(0.1, _AT_ONCE).records, large, small) < BACKLOG / 2
