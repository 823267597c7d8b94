"""The search through log and decisions finds what reading all of both finds, and reads little."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from tests.driver import DECISIONS, INDEX_GROUP, LOG, SCHEME, World
from tests.memory.broker import MemoryBroker
from twinsieve.pipeline.broker.excerpts import Excerpts
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.why import log_search
from twinsieve.pipeline.why.log_search import Asked, Judged, LogSearch, Unfound, Wanted
from twinsieve.pipeline.wire.block import Block, BlockFlag, RowKind, decode_block, encode_block
from twinsieve.pipeline.wire.frame import What, checksum_of
from twinsieve.pipeline.wire.ruling import Result, Ruling, Source, decode_ruling, encode_ruling
from twinsieve.stages.contract import Kind, Verdicts


def search_of(world: World, most: int = 1_000_000) -> LogSearch:
    broker = MemoryBroker(world.cluster)
    committed = world.cluster.group(INDEX_GROUP).offsets.get(LOG)
    return LogSearch(
        Excerpts(broker, world.clock, most),
        broker.admin(),
        LOG,
        DECISIONS,
        committed.offset if committed is not None else None,
    )


@dataclass
class Told:
    """The counting ruling as a plain walk over everything finds it."""

    log_offset: int | None = None
    kind: int | None = None
    emitted: bool = False
    asked: bool = False


def judged_blocks(world: World) -> Iterator[tuple[int, Block, Ruling | None]]:
    rulings = {}
    for _, entry in world.cluster.log(DECISIONS).visible():
        ruling = decode_ruling(What.DECISION, entry.value or b"", SCHEME, "decision")
        rulings[ruling.log_offset] = ruling
    for offset, entry in world.cluster.log(LOG).visible():
        yield offset, decode_block(entry.value or b"", SCHEME, "block"), rulings.get(offset)


def told_plainly(world: World, topic: str) -> dict[tuple[int, int], Told]:
    """By partition and offset."""
    topic_id = world.cluster.topics[topic].topic_id
    found: dict[tuple[int, int], Told] = {}
    for log_offset, block, ruling in judged_blocks(world):
        if block.topic_id != topic_id:
            continue
        for offset in range(block.emitted_from, block.emitted_to):
            told = found.setdefault((block.number, offset), Told())
            told.emitted = True
        for row, offset in enumerate(block.offsets.tolist()):
            told = found.setdefault((block.number, offset), Told())
            told.asked = True
            if ruling is None or ruling.result is not Result.JUDGED or told.emitted:
                continue
            if ruling.sources[row] == Source.REPLAYED:
                told.emitted = True
            else:
                told.log_offset, told.kind = log_offset, int(ruling.verdicts.kinds[row])
    return found


def hints(world: World, at: Partition, offset: int, dice: random.Random) -> int | None:
    log = world.cluster.log(at)
    stamp = log.entries[offset - log.beginning].timestamp_ms if log.beginning <= offset < log.end else None
    wrong = world.clock.now_ms() + dice.randrange(-200_000, 50_000)
    return dice.choice([stamp, stamp, None, wrong, 0])


def eventful(seed: int) -> World:
    """A deployment that was killed, paused, reset and rebalanced."""
    dice = random.Random(seed)
    world = World(partitions=3)
    for slot in ("a", "b"):
        world.start(slot)
    for _ in range(40):
        at = Partition("in", dice.randrange(3))
        event = dice.random()
        if event < 0.55:
            texts: list[bytes | None] = [b"%d" % dice.randrange(60) for _ in range(dice.randrange(1, 9))]
            world.produce(*at, texts)
            world.run(dice.randrange(8))
        elif event < 0.7:
            world.run(40)
        elif event < 0.8 and world.processes:
            dice.choice(world.processes).pause(dice.choice([2.0, 9.0]))
            world.run(20)
        elif event < 0.9:
            dice.choice(world.processes).kill()
            world.start(f"c{seed}-{dice.random()}")
            world.clock.sleep(dice.choice([0.0, 9.0]))
        else:
            calm(world, f"e{seed}-{dice.random()}")
            world.kill_all()
            end = world.cluster.log(at).end
            world.move_offset(at, dice.randrange(end + 1))
            world.start(f"d{seed}-{dice.random()}")
    if dice.random() < 0.7:
        calm(world, "last")
    return world


def calm(world: World, slot: str) -> None:
    """Let everything come out, by a new process too, as all others may be dead or paused."""
    world.clock.sleep(10.0)
    world.start(slot)
    world.settle()


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(8))
def test_the_search_finds_what_a_walk_over_everything_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_search, "_NEAR", 3)
    monkeypatch.setattr(log_search, "_HINTED", 5)
    world, dice = eventful(seed), random.Random(seed)
    plain = told_plainly(world, "in")
    topic_id = world.cluster.topics["in"].topic_id
    for number in range(3):
        at = Partition("in", number)
        for offset in range(world.cluster.log(at).end + 2):
            told = plain.get((number, offset), Told())
            hint_ms = hints(world, at, offset, dice)
            found = search_of(world).find(Wanted(topic_id, at, offset), hint_ms, came_out=told.emitted)
            where = f"seed {seed}, {at}@{offset}, hint {hint_ms}, {told}, {found}"
            if told.log_offset is not None:
                assert isinstance(found, Judged), where
                assert (found.log_offset, found.emitted) == (told.log_offset, told.emitted), where
                assert int(found.verdicts.kinds[0]) == told.kind, where
            elif told.asked:
                assert isinstance(found, Asked) or found is Unfound.NEVER_ASKED, where
            else:
                assert found is Unfound.NEVER_ASKED, where


def long_run(blocks: int) -> World:
    world = World(partitions=2)
    world.start("a")
    for number in range(blocks):
        world.produce("in", number % 2, [b"text %d" % number])
        world.run(6)
    world.settle()
    return world


def test_a_search_reads_a_small_part_of_the_log() -> None:
    world = long_run(300)
    topic_id = world.cluster.topics["in"].topic_id
    at = Partition("in", 1)
    assert world.cluster.log(LOG).end > 300
    for offset in (0, 17, 75, 149):
        stamp = world.cluster.log(at).entries[offset].timestamp_ms
        for hint_ms, most in ((stamp, 60), (None, 330), (0, 600)):
            search = search_of(world)
            found = search.find(Wanted(topic_id, at, offset), hint_ms)
            assert isinstance(found, Judged)
            assert found.emitted
            assert search.excerpts.records <= most, (offset, hint_ms)


def block(first: int, end: int, session: int, flags: BlockFlag = BlockFlag.NONE, rows: int = 0) -> Block:
    """A block of rows that cannot be read. rows: their number, from `first` on"""
    offsets = np.arange(first, first + rows, dtype=np.int64)
    kinds = np.full(rows, RowKind.UNREADABLE, np.uint8)
    return Block(bytes(16), 0, 0, session, flags, first, end, 0, 0, topic="in", offsets=offsets, kinds=kinds)


def test_blocks_of_a_session_that_is_over_hide_no_later_one() -> None:
    """A frozen worker asked ahead, in a session that another one had ended; then that one asks from the start."""
    world = World(partitions=1)
    start = BlockFlag.START
    asked = [
        block(0, 10, 1, rows=10),
        block(10, 20, 1, rows=10),
        block(0, 0, 2, start),
        block(0, 10, 2, rows=10),
    ]
    for log_offset, one in enumerate(asked):
        data = encode_block(one, SCHEME)
        judged = one.session == 2
        verdicts = Verdicts.blank(len(one) if judged else 0, fill={"kinds": Kind.UNREADABLE})
        ruling = Ruling(
            log_offset, one.session, Result.JUDGED if judged else Result.SUPERSEDED, one.first, one.end,
            np.zeros(len(verdicts), np.uint8), verdicts, {0: "in"} if judged else {}, checksum=checksum_of(data),
        )  # fmt: skip
        for at, value in ((LOG, data), (DECISIONS, encode_ruling(ruling, SCHEME)[0])):
            messages = Messages()
            messages.add(None, value)
            world.cluster.write(at, messages)
    found = search_of(world).find(Wanted(bytes(16), Partition("in", 0), 5), None)
    assert isinstance(found, Judged)
    assert (found.log_offset, found.kind, found.emitted) == (3, RowKind.UNREADABLE, False)


def test_what_waits_for_its_ruling_is_told_from_what_nobody_asked_for() -> None:
    world = World(partitions=1)
    world.start("a")
    world.produce("in", 0, [b"one", b"two"])
    world.settle()
    world.kill_all()
    world.start("b", roles="worker")
    world.produce("in", 0, [b"three"])
    world.run(30)
    topic_id, at = world.cluster.topics["in"].topic_id, Partition("in", 0)
    found = search_of(world).find(Wanted(topic_id, at, 2), world.clock.now_ms())
    assert isinstance(found, Asked) or found is Unfound.NEVER_ASKED
    assert search_of(world).find(Wanted(topic_id, at, 3), None) is Unfound.NEVER_ASKED
    assert isinstance(search_of(world).find(Wanted(topic_id, at, 1), None), Judged)
    assert search_of(world).find(Wanted(bytes(16), at, 1), None) is Unfound.NEVER_ASKED


def test_a_decision_and_a_block_that_retention_took() -> None:
    world = long_run(40)
    topic_id, at = world.cluster.topics["in"].topic_id, Partition("in", 0)
    wanted = Wanted(topic_id, at, 5)
    found = search_of(world).find(wanted, None)
    assert isinstance(found, Judged)
    world.cluster.log(DECISIONS).trim(found.decision_offset + 1)
    assert search_of(world).find(wanted, None) is Unfound.DECISION_GONE
    world.cluster.log(LOG).trim(found.log_offset + 1)
    assert search_of(world).find(wanted, None) is Unfound.BLOCK_GONE
    assert isinstance(search_of(world).find(wanted._replace(offset=19), None), Judged)


def test_offsets_without_a_message() -> None:
    world = World(partitions=1)
    world.produce("in", 0, [b"%d" % number for number in range(6)])
    world.compact(Partition("in", 0), [3])
    world.start("a")
    world.settle()
    topic_id, at = world.cluster.topics["in"].topic_id, Partition("in", 0)
    assert search_of(world).find(Wanted(topic_id, at, 3), None) is Unfound.NO_MESSAGE
    found = search_of(world).find(Wanted(topic_id, at, 4), None)
    assert isinstance(found, Judged)
    assert np.array_equal(found.verdicts.kinds, [0])
