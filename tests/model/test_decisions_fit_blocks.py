"""A decision is applied to the block that it was made for, or the index stops and says what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import DECISIONS, GROUP, LOG, OUTPUT, SCHEME, WORKER, World, texts
from tests.memory.log import Entry
from tests.model.checker import check_settled
from tests.model.test_foreign_scheme import OTHER
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.wire.block import Block, decode_block, encode_block
from twinsieve.pipeline.wire.frame import What
from twinsieve.pipeline.wire.ruling import Result, decode_ruling, encode_ruling

IN = Partition("in", 0)


def judged(rounds: list[list[bytes | None]]) -> World:
    """A world in which these rounds came out one after the other, and every process was killed."""
    world = World(partitions=1)
    world.start("a")
    for values in rounds:
        world.produce("in", 0, values)
        world.settle()
    world.kill_all()
    return world


def cut(world: World, lost: int) -> None:
    """The log loses its last blocks, as after a power failure of its only broker."""
    entries = world.cluster.log(LOG).entries
    del entries[len(entries) - lost :]


def grow_and_restore(world: World, rounds: list[list[bytes | None]]) -> None:
    """A worker appends blocks while no index is there; then an index restores."""
    world.start("w", roles="worker")
    world.run(3)
    for values in rounds:
        world.produce("in", 0, values)
        world.run(2)
    world.start("i", roles="index")
    world.run(100)


QUIET: list[list[bytes | None]] = [[value] for value in (b"a", b"a", b"b", b"b", b"b", b"c", b"c", b"a")]


@pytest.mark.parametrize("lost", range(1, 14))
@pytest.mark.parametrize("count", [1, 4, 9])
def test_no_message_gets_the_verdict_of_a_block_that_the_log_has_lost(lost: int, count: int) -> None:
    """Blocks of one message each: the numbers of rows agree with those that were lost."""
    world = judged(QUIET)
    cut(world, lost)
    before = world.cluster.values(OUTPUT)
    grow_and_restore(world, [[b"new %d" % number] for number in range(count)])
    (stop,) = world.stops
    assert "app.fingerprints[0]" in stop
    assert "lost blocks" in stop
    assert "start a new app" in stop
    assert world.cluster.values(OUTPUT) == before


def test_a_log_that_lost_its_end_stops_the_index_also_while_it_is_shorter() -> None:
    world = judged([texts(0, 20), texts(20, 40)])
    cut(world, 1)
    world.start("i", roles="index")
    world.run(60)
    (stop,) = world.stops
    assert "app.fingerprints[0] ends at" in stop
    assert "lost blocks" in stop


@pytest.mark.parametrize("asked_before", [True, False])
def test_decisions_of_a_deleted_log_are_not_applied_to_the_one_made_again(
    asked_before: bool,
) -> None:
    world = judged([[b"a"]] * 6)
    world.make_again(LOG.topic, 1)
    grow_and_restore(world, [[b"new"]] if asked_before else [])
    (stop,) = world.stops
    assert "app.decisions[0]@" in stop
    assert "created again" in stop
    assert "start a new app" in stop
    assert world.cluster.values(OUTPUT) == [b"a"]


@pytest.mark.parametrize("result", [Result.FOREIGN, Result.SUPERSEDED])
def test_a_refusal_is_not_applied_to_another_block_either(result: Result) -> None:
    """A block that was refused is gone, and another one stands where it stood."""
    world = World(partitions=1)
    world.start("a")
    world.produce("in", 0, texts(0, 5))
    world.settle()
    foreign = replace(WORKER, scheme=OTHER) if result is Result.FOREIGN else WORKER
    world.start("b", roles="worker", worker_config=foreign)
    world.cluster.group(GROUP).rebalance(1)
    world.produce("in", 0, texts(5, 9))
    world.settle(tend=lambda: None)
    at = last_of(world, result)
    world.kill_all()
    world.stops.clear()
    entries = world.cluster.log(LOG).entries
    entries[at] = entries[0]
    world.start("i", roles="index")
    world.run(60)
    (stop,) = world.stops
    assert f"app.fingerprints[0]@{at}: is not the block" in stop


def last_of(world: World, result: Result) -> int:
    """Log offset of the last block with this result; a block that was judged is made one where there is
    none."""
    visible = list(world.cluster.log(DECISIONS).visible())
    rulings = [(entry, decode_ruling(What.DECISION, entry.value or b"", SCHEME, "")) for _, entry in visible]
    found = [ruling.log_offset for _, ruling in rulings if ruling.result is result]
    if found:
        return found[-1]
    entry, ruling = next(each for each in reversed(rulings) if not len(each[1]))
    refused = replace(ruling, result=result)
    entry.value = encode_ruling(refused, SCHEME)[0]
    return ruling.log_offset


def test_a_log_that_is_whole_restores() -> None:
    world = judged([texts(0, 20), texts(10, 30)])
    world.start("a")
    world.produce("in", 0, texts(20, 50))
    check_settled(world)


def test_another_content_in_the_same_range_is_not_the_block_that_was_judged() -> None:
    world = judged(QUIET)
    log = world.cluster.log(LOG)
    last = max(place for place, entry in enumerate(log.entries) if len(block_of(entry)))
    other = block_of(log.entries[last])
    other.arrival_ms += 1
    log.entries[last].value = encode_block(other, SCHEME)
    world.start("i", roles="index")
    world.run(60)
    (stop,) = world.stops
    assert f"app.fingerprints[0]@{last}: is not the block that decision" in stop


def block_of(entry: Entry) -> Block:
    return decode_block(entry.value or b"", SCHEME, "log")
