"""A message that was judged and never comes out leads nobody from then on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.driver import DEAD, DUPLICATES, OUTPUT, World
from tests.model.checker import check_settled
from tests.model.test_model_ledger import ask, take
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.ledger import GivenUp, Ledger
from twinsieve.pipeline.wire.block import BlockFlag
from twinsieve.pipeline.wire.ruling import Result, Source

IN = Partition("in", 0)


def judged_not_emitted(
    values: list[bytes | None], snapshots: str | None = None, more: list[bytes | None] | None = None
) -> World:
    """A world in which these values were judged, and every process was killed before any of them came out.

    more: of the second partition; values: of the first
    """
    world = World(partitions=2)
    worker = world.start("w", roles="worker")
    index = world.start("i", roles="index", snapshots=snapshots)
    world.produce("in", 0, [b"first"])
    world.settle()
    world.produce("in", 0, values)
    world.produce("in", 1, more or [])
    for process in (worker, worker, index, index):
        process.step()
    assert index.index is not None
    books = index.index.state.ledger.books.values()
    world.kill_all()
    assert sum(len(rows) for book in books for rows in book.open.chunks) == len(values) + len(more or [])
    assert out(world) == [b"first"]
    return world


def out(world: World) -> list[bytes | None]:
    return [value for number in range(2) for value in world.cluster.values(OUTPUT, number)]


def trim(world: World) -> None:
    world.cluster.log(IN).trim(world.cluster.log(IN).end)


def skip(world: World) -> None:
    world.move_offset(IN, world.cluster.log(IN).end)


def recreate(world: World, partitions: int) -> None:
    """The input is deleted and made again; `reset` begins at its beginning."""
    world.make_again("in", partitions)
    for number in range(partitions):
        world.move_offset(Partition("in", number), 0)


@pytest.mark.parametrize("lose", [trim, skip])
@pytest.mark.parametrize("restores", ["no", "from the log", "from a snapshot"])
def test_a_copy_of_what_never_came_out_comes_out(
    lose: Callable[[World], None], restores: str, tmp_path: Path
) -> None:
    """Retention took the messages, or an operator moved the offset behind them."""
    kept = str(tmp_path) if restores == "from a snapshot" else None
    world = judged_not_emitted([b"x", b"y"], kept)
    lose(world)
    world.start("a", snapshots=kept)
    world.run(20)
    if restores != "no":
        world.clock.sleep(5.0)
        world.produce("in", 1, [b"other"])
        world.settle()
        world.kill_all()
        world.start("b", snapshots=kept)
    world.produce("in", 0, [b"x", b"z"])
    world.produce("in", 1, [b"y", b"x"])
    world.settle()
    assert sorted(filter(None, out(world))) == sorted(
        [b"first", b"x", b"y", b"z"] + ([b"other"] if restores != "no" else [])
    )
    check_settled(world, in_order=False)
    counted = [process.index.given_up for process in world.processes if process.index is not None]
    reason = GivenUp.RETENTION if lose is trim else GivenUp.RESET
    assert sum(counted, Counter()) == {reason: 2}, "by the index that judged it, and by no later one"


def test_an_idle_partition_is_passed_over_at_once() -> None:
    """No message comes to the partition itself; the copy comes to another one."""
    world = judged_not_emitted([b"x"])
    skip(world)
    world.start("a")
    world.run(40)
    world.produce("in", 1, [b"x"])
    world.settle()
    assert out(world) == [b"first", b"x"]
    check_settled(world, in_order=False)


def test_what_was_skipped_is_judged_anew_when_the_offset_is_moved_back() -> None:
    world = judged_not_emitted([b"x", b"y"])
    skip(world)
    world.start("a")
    world.produce("in", 0, [b"x"])
    world.settle()
    world.kill_all()
    world.move_offset(IN, 0)
    world.start("a")
    world.settle()
    assert sorted(filter(None, out(world))) == [b"first", b"x", b"y"]
    assert world.cluster.values(DUPLICATES) == [b"x"], "the skipped one is the copy now"
    check_settled(world, in_order=False)


def test_a_topic_created_again_takes_its_unemitted_leaders_with_it() -> None:
    world = judged_not_emitted([b"x"])
    recreate(world, 2)
    world.start("a")
    world.run(40)
    world.produce("in", 1, [b"x"])
    world.settle()
    assert out(world) == [b"first", b"x"]
    check_settled(world, in_order=False)


@pytest.mark.parametrize("place", ["fewer", "others", "the same"])
def test_a_topic_created_again_takes_unemitted_leaders_of_all_partitions(place: str) -> None:
    """Its messages are written again: into fewer partitions, into others, into the same."""
    texts: list[list[bytes | None]] = [[b"x", b"y"], [b"z"]]
    world = judged_not_emitted(texts[0], more=texts[1])
    recreate(world, 1 if place == "fewer" else 2)
    for number, values in enumerate(texts):
        world.produce("in", {"fewer": 0, "others": 1 - number, "the same": number}[place], values)
    process = world.start("a")
    world.settle()
    assert sorted(filter(None, out(world))) == [b"first", b"x", b"y", b"z"]
    assert process.index is not None
    assert process.index.given_up == {GivenUp.RECREATED: 3}
    check_settled(world, in_order=False)


@pytest.mark.parametrize("last", [False, True])
def test_what_compaction_took_before_it_came_out_leads_nobody(last: bool) -> None:
    """Only the rows that a session does not find again tell of it; where the last ones are gone, an empty block."""
    world = judged_not_emitted([b"x", b"y", b"z"])
    if not last:
        world.produce("in", 0, [b"newer"])
    world.compact(IN, [3 if last else 2])
    process = world.start("a")
    world.settle()
    if last:
        world.run(40)
    world.produce("in", 1, [b"x", b"y", b"z"])
    world.settle()
    gone = b"z" if last else b"y"
    assert out(world).count(gone) == 1
    assert len(out(world)) == (4 if last else 5)
    assert process.index is not None
    assert process.index.given_up == {GivenUp.COMPACTED: 1}
    check_settled(world, in_order=False)


def test_what_the_output_refuses_after_it_was_judged_leads_nobody() -> None:
    """It is a dead letter; a duplicate that was judged before stays one, and a tombstone led nobody anyway."""
    big = b"x" * 900
    world = judged_not_emitted([big, b"first" * 180, b"y", None], more=[big])
    world.limit(OUTPUT, 500)
    process = world.start("a")
    world.settle()
    assert sorted(out(world), key=str) == [None, b"first", b"y"]
    assert world.cluster.values(DEAD) == [big, b"first" * 180]
    assert process.index is not None
    assert process.index.given_up == {GivenUp.REFUSED: 2}
    world.limit(OUTPUT, 5_000)
    world.produce("in", 1, [big, b"y", big])
    world.settle()
    world.kill_all()
    world.start("b")
    world.produce("in", 1, [big])
    world.settle()
    assert sorted(filter(None, out(world))) == [b"first", big, b"y"]
    check_settled(world, in_order=False)


def test_a_worker_of_a_deleted_topic_that_wakes_up_late_adds_no_leader() -> None:
    """Its session was over when the new topic's went on."""
    ledger = Ledger()
    take(ledger, ask(1, 0, 0, BlockFlag.START))
    take(ledger, ask(1, 0, 5))
    old = replace(ask(1, 5, 9), number=1)
    take(ledger, replace(ask(1, 5, 5, BlockFlag.START), number=1))
    begin = replace(ask(2, 0, 0, BlockFlag.START | BlockFlag.CERTIFIED), topic_id=b"u" * 16)
    assert take(ledger, begin) is Result.JUDGED
    assert ledger.check(old) is Result.JUDGED, "a session that only began says nothing"
    assert take(ledger, replace(ask(2, 0, 3), topic_id=b"u" * 16)) is Result.JUDGED
    assert ledger.given_up == {GivenUp.RECREATED: 5}
    assert take(ledger, old) is Result.SUPERSEDED
    assert take(ledger, ask(1, 5, 9)) is Result.SUPERSEDED


def test_a_frozen_worker_that_begins_a_session_late_takes_no_leader_away() -> None:
    """It read its offset, was frozen, and an operator moved the offset back: its session never goes on."""
    ledger = Ledger()
    take(ledger, ask(1, 0, 0, BlockFlag.START))
    take(ledger, ask(1, 0, 5))
    late = replace(ask(2, 3, 3, BlockFlag.START | BlockFlag.RESET), emitted_from=0, emitted_to=0)
    assert ledger.check(late) is Result.JUDGED
    assert ledger.enter(late) == []
    again = ask(3, 0, 0, BlockFlag.START)
    assert ledger.enter(again) == []
    asked = ask(3, 0, 5)
    assert ledger.enter(asked) == []
    assert ledger.sources(asked)[0].tolist() == [Source.STORED] * 5
    assert ledger.given_up.total() == 0
