"""An input that lost messages which were emitted stops the app, also once others have taken their offsets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.driver import GROUP, OUTPUT, Process, World, texts
from tests.memory.log import Outcome, Transaction
from twinsieve.pipeline.broker.mark import read_mark
from twinsieve.pipeline.broker.records import Committed, Messages, Partition

INPUT = Partition("in", 0)
LOST = "in[0]: messages that were read are gone, and new ones have their offsets"


def emitted(count: int) -> tuple[World, Process]:
    """An app that has emitted `count` messages."""
    world = World(partitions=1)
    world.produce("in", 0, texts(0, count))
    process = world.start("a")
    world.settle()
    return world, process


def lose(world: World, end: int, new: int) -> None:
    """The input loses what lies at `end` and behind, and gives its offsets to `new` other messages."""
    world.truncate(INPUT, end)
    world.produce("in", 0, texts(100, 100 + new))


def write_open(world: World, count: int) -> Transaction:
    """So many messages of a transaction that is open."""
    transaction = Transaction(world.clock.monotonic_s())
    messages = Messages()
    for number in range(count):
        messages.add(None, b"never %d" % number)
    world.cluster.write(INPUT, messages, transaction)
    return transaction


def committed(world: World) -> Committed:
    return world.cluster.group(GROUP).offsets[INPUT]


@pytest.mark.parametrize("end", [9, 4, 0])
@pytest.mark.parametrize("new", [10, 30])
def test_a_session_begins_on_no_offsets_that_were_given_again(end: int, new: int) -> None:
    world, process = emitted(10)
    process.kill()
    lose(world, end, new)
    world.start("a")
    world.run(200)
    assert [stop.partition(";")[0] for stop in world.stops] == [LOST]
    assert world.cluster.values(OUTPUT) == texts(0, 10)


def test_every_later_start_stops_until_somebody_says_where_to_go_on() -> None:
    world, process = emitted(10)
    process.kill()
    lose(world, 4, 10)
    for number in range(1, 4):
        world.start("a")
        world.run(100)
        assert len(world.stops) == number
    world.move_offset(INPUT, committed(world).offset)
    world.start("a")
    world.settle()
    assert len(world.stops) == 3
    assert world.cluster.values(OUTPUT) == texts(0, 10) + texts(106, 110)


def test_a_worker_that_runs_stops_too() -> None:
    world, process = emitted(10)
    lose(world, 4, 10)
    world.run(100)
    assert [stop.partition(";")[0] for stop in world.stops] == [LOST]
    assert not process.running
    assert world.cluster.values(OUTPUT) == texts(0, 10)


def test_what_was_lost_before_anybody_read_it_costs_nothing() -> None:
    world, process = emitted(10)
    process.kill()
    world.produce("in", 0, texts(10, 20))
    lose(world, 10, 7)
    world.start("a")
    world.settle()
    assert world.stops == []
    assert world.cluster.values(OUTPUT) == texts(0, 10) + texts(100, 107)


def by_a_rest(world: World) -> None:
    world.cluster.log(INPUT).elect()


def by_a_transaction_that_ends_later(world: World) -> None:
    """The control marker behind the last message is another leader's."""
    transaction = write_open(world, 3)
    world.cluster.log(INPUT).elect()
    transaction.end(Outcome.ABORTED)
    world.run(50)


@pytest.mark.parametrize("change", [by_a_rest, by_a_transaction_that_ends_later])
def test_a_leader_that_has_everything_stops_nothing(change: Callable[[World], None]) -> None:
    world, process = emitted(10)
    change(world)
    world.cluster.log(INPUT).elect()
    process.kill()
    world.produce("in", 0, texts(10, 20))
    world.start("a")
    world.settle()
    assert world.stops == []
    assert world.cluster.values(OUTPUT) == texts(0, 20)


def test_what_retention_took_is_compared_with_nothing() -> None:
    world, process = emitted(10)
    process.kill()
    world.produce("in", 0, texts(10, 20))
    world.cluster.log(INPUT).trim(15)
    world.cluster.log(INPUT).elect()
    world.start("a")
    world.settle()
    assert world.stops == []
    assert world.cluster.values(OUTPUT) == texts(0, 10) + texts(15, 20)


@pytest.mark.parametrize("version", ["1 {0} 0 10", "2 {0} 0 10 1"])
def test_marks_of_older_versions_are_read_and_name_no_epoch(version: str) -> None:
    world, process = emitted(10)
    process.kill()
    topic_id = world.cluster.topics["in"].topic_id
    offsets = world.cluster.group(GROUP).offsets
    assert offsets[INPUT].metadata == f"5 {topic_id.hex()} 0 10 0 10 0 0"
    offsets[INPUT] = Committed(10, version.format(topic_id.hex()))
    lose(world, 4, 10)
    world.start("a")
    world.settle()
    assert world.stops == []
    assert world.cluster.values(OUTPUT) == texts(0, 10) + texts(106, 110)
    mark = read_mark(committed(world).metadata)
    assert mark is not None
    assert (mark.first, mark.end, mark.read, mark.epoch) == (0, 14, 14, 1)


def test_a_mark_of_version_3_names_its_epoch() -> None:
    world, process = emitted(10)
    process.kill()
    topic_id = world.cluster.topics["in"].topic_id
    world.cluster.group(GROUP).offsets[INPUT] = Committed(10, f"3 {topic_id.hex()} 0 10 0 10 0")
    lose(world, 4, 10)
    world.start("a")
    world.run(50)
    assert "messages that were read are gone" in world.stops[0]
    assert world.cluster.values(OUTPUT) == texts(0, 10)
