"""A restore that begins in the middle of a session: the block that opened it is no longer in the log."""

from __future__ import annotations

from dataclasses import replace

from tests.driver import DUPLICATES, GROUP, OUTPUT, World, texts
from tests.model.test_model_ledger import ask, take
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.ledger import Ledger

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
    world.cluster.delete("in")
    world.cluster.create(NewTopic("in", 1))
    world.cluster.group(GROUP).offsets.pop(IN, None)
    world.produce("in", 0, [b"other"])
    world.start("a")
    world.run(100)
    assert any("created again" in stop for stop in world.stops), world.stops
    assert world.cluster.values(OUTPUT) == before


def test_a_topic_whose_name_the_record_lacks_gets_it_from_the_next_block() -> None:
    """As version 1 recorded it, with the name in the first block of a session alone."""
    ledger = Ledger()
    ledger.enter(replace(ask(1, 0, 5), topic=""))
    ledger.books[(0, 0)].session, ledger.books[(0, 0)].covered = 1, 5
    take(ledger, ask(1, 5, 9))
    assert [known.name for known in ledger.topics] == ["in"]
