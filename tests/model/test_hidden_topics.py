"""Retention may take all blocks of a topic. A restore goes on with the topic numbers of who judged: leaders keep
their names, and no position stands for two messages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.driver import DECISIONS, LOG, OUTPUT, SCHEME, WORKER, World
from tests.twins import HashSieve, TinyScheme, batch_of, ruled
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.wire.block import Block, BlockFlag
from twinsieve.pipeline.wire.frame import What
from twinsieve.pipeline.wire.positions import unpack_position
from twinsieve.pipeline.wire.ruling import Ruling, Source, decode_ruling, encode_ruling
from twinsieve.stages.contract import Kind

_LATEST_MS = 1_600_000_000_000


def block(
    topic: str,
    session: int,
    offset: int,
    text: str,
    flags: BlockFlag = BlockFlag.START | BlockFlag.RESET,
    at_ms: int = _LATEST_MS,
) -> Block:
    """One row at `offset`, which its session begins with; `at_ms`: its own time, and when its worker says it arrived."""
    bodies, prints = TinyScheme().read([text])
    rows = batch_of(bodies, prints, times=at_ms)
    return Block(
        topic.encode() * 16, 0, 0, session, flags, offset, offset + 1, offset, offset, stable_end=99,
        arrival_ms=at_ms, topic=topic,
        offsets=np.array([offset]), kinds=np.zeros(1, np.uint8), batch=rows,
    )  # fmt: skip


def recorded(ruling: Ruling) -> Ruling:
    """As a restore reads it."""
    return decode_ruling(What.DECISION, encode_ruling(ruling, SCHEME)[0], SCHEME, "decision")


def leader(ruling: Ruling) -> tuple[str, int]:
    at = unpack_position(int(ruling.verdicts.leaders[0]))
    return ruling.topics[at.topic_number], at.offset


def restored(*follow: tuple[Block, Ruling]) -> IndexState:
    state = IndexState(HashSieve())
    for each, ruling in follow:
        state.follow([(each, recorded(ruling))])
    return state


@pytest.fixture
def judged() -> list[tuple[Block, Ruling]]:
    """Topic `a` has a message, `b` its copy and one of its own."""
    state = IndexState(HashSieve())
    blocks = [
        block("a", 1, 5, "same"),
        block("b", 2, 7, "same"),
        replace(block("b", 2, 8, "own"), flags=BlockFlag.NONE),
    ]
    return [(each, ruled(state, each, at, _LATEST_MS)) for at, each in enumerate(blocks)]


def test_a_stored_verdict_names_its_leader_whose_topic_is_gone(
    judged: list[tuple[Block, Ruling]],
) -> None:
    state = restored(*judged[1:])
    ruling = ruled(state, block("b", 3, 7, "same"), 3, _LATEST_MS)
    assert (ruling.sources[0], ruling.verdicts.kinds[0]) == (Source.STORED, Kind.EXACT)
    assert leader(ruling) == ("a", 5)


def test_a_kept_message_has_the_same_position_in_every_restore(judged: list[tuple[Block, Ruling]]) -> None:
    whole, cut = restored(*judged), restored(*judged[1:])
    copies = [ruled(state, block("b", 3, 9, "own"), 3, _LATEST_MS) for state in (whole, cut)]
    assert [leader(ruling) for ruling in copies] == [("b", 8), ("b", 8)]
    assert copies[0].verdicts.leaders[0] == copies[1].verdicts.leaders[0]


def test_a_topic_whose_blocks_are_gone_may_come_back(judged: list[tuple[Block, Ruling]]) -> None:
    state = restored(*judged[1:])
    new = ruled(state, block("a", 4, 6, "new"), 3, _LATEST_MS)
    copy = ruled(state, replace(block("a", 4, 7, "new"), flags=BlockFlag.NONE), 4, _LATEST_MS)
    assert (new.verdicts.kinds[0], copy.verdicts.kinds[0]) == (Kind.UNIQUE, Kind.EXACT)
    assert leader(copy) == ("a", 6)
    again = restored(*judged[1:], (block("a", 4, 6, "new"), new))
    known = ruled(again, block("b", 5, 9, "new"), 4, _LATEST_MS)
    assert leader(known) == ("a", 6)


def test_whoever_numbers_topics_otherwise_is_followed_by_their_names(
    judged: list[tuple[Block, Ruling]],
) -> None:
    # `late` restored when retention had taken all blocks and decisions of `a`: topic `b` is number 0 there, and 1
    # for `whole`.
    whole, late = restored(*judged), IndexState(HashSieve())
    own = block("b", 3, 20, "later")
    copy = replace(block("b", 3, 21, "later"), flags=BlockFlag.NONE)
    for at, each in ((3, own), (4, copy)):
        whole.follow([(each, recorded(ruled(late, each, at, _LATEST_MS)))])
    # A new session asks for both again, and for one that is new.
    ruled(whole, block("b", 4, 20, "later"), 5, _LATEST_MS)
    again, new = (
        ruled(whole, replace(block("b", 4, at, "later"), flags=BlockFlag.NONE), at, _LATEST_MS)
        for at in (21, 22)
    )
    assert [(ruling.sources[0], leader(ruling)) for ruling in (again, new)] == [
        (Source.STORED, ("b", 20)),
        (Source.NEW, ("b", 20)),
    ]


def test_a_topic_that_only_the_judge_knows_gets_a_number_of_its_own(
    judged: list[tuple[Block, Ruling]],
) -> None:
    # `late` knows `c` and then `b`; who follows has `a` and `b` there, and never saw a block of `c`.
    whole, late = restored(*judged), IndexState(HashSieve())
    ruled(late, block("c", 6, 30, "same of c"), 2, _LATEST_MS)
    copy = block("b", 7, 31, "same of c")
    whole.follow([(copy, recorded(ruled(late, copy, 3, _LATEST_MS)))])
    again = ruled(whole, block("b", 8, 31, "same of c"), 4, _LATEST_MS)
    assert (again.sources[0], leader(again)) == (Source.STORED, ("c", 30))


def test_an_index_goes_on_though_retention_took_all_of_a_topic() -> None:
    world = World(partitions=1, topics=("in", "more"))
    both = replace(WORKER, topics=("in", "more"))
    world.start("a")
    world.produce("in", 0, [b"one", b"two"])
    world.run(100)
    hidden, decided = world.cluster.log(LOG).stable_end, world.cluster.log(DECISIONS).stable_end
    world.kill_all()
    world.start("b", worker_config=both)
    world.produce("more", 0, [b"one", b"three"])
    world.run(100)
    world.kill_all()
    world.trim_log(hidden)
    world.trim_decisions(decided)
    world.start("c", worker_config=both)
    world.produce("more", 0, [b"three", b"four"])
    world.produce("in", 0, [b"four"])
    world.run(200)
    assert world.stops == []
    assert sorted(world.cluster.values(OUTPUT)) == [b"four", b"one", b"three", b"two"]
