"""Messages arrive when the broker writes their block: no clock of a process counts, and a restore needs none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.driver import LOG, OUTPUT, SCHEME, World
from tests.model.test_mixed_versions import recorded
from tests.twins import TinyScheme, batch_of
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.wire.block import Block, BlockFlag, decode_block, encode_block
from twinsieve.pipeline.wire.frame import What
from twinsieve.pipeline.wire.ruling import Ruling, decode_ruling, encode_ruling
from twinsieve.stages.contract import ExactConfig, Kind, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve

NOW_MS = 1_600_000_000_000
DAYS_MS = 10 * 86_400_000
HOUR_MS = 3_600_000


def state() -> IndexState:
    exact = ExactConfig("trie", window=Window(100, HOUR_MS))
    return IndexState(BatchSieve(SieveConfig(exact, NearConfig(method="none", window=Window(5)))))


def saved(index: IndexState) -> bytes:
    assert isinstance(index.sieve, BatchSieve)
    return index.sieve.to_bytes()


def block(first: int, text: str, time_ms: int, arrival_ms: int) -> Block:
    bodies, prints = TinyScheme().read([text])
    rows = batch_of(bodies, prints, times=time_ms)
    return Block(
        b"t" * 16, 0, 0, 1, BlockFlag.NONE if first else BlockFlag.START, first, first + 1, first, first,
        stable_end=9, arrival_ms=arrival_ms, topic="in",
        offsets=np.array([first]), kinds=np.zeros(1, np.uint8), batch=rows,
    )  # fmt: skip


AHEAD = [
    block(0, "a", NOW_MS, NOW_MS),
    block(1, "b", NOW_MS + DAYS_MS, NOW_MS + DAYS_MS),
    block(2, "a", NOW_MS + 1_000, NOW_MS + 1_000),
]


def ruled(index: IndexState) -> list[Ruling]:
    return [index.rule(each, place, NOW_MS + place) for place, each in enumerate(AHEAD)]


def test_times_of_the_future_are_bounded_by_arrival_and_expire_nothing() -> None:
    rulings = ruled(state())
    assert [int(ruling.verdicts.kinds[0]) for ruling in rulings] == [Kind.UNIQUE, Kind.UNIQUE, Kind.EXACT]
    assert [ruling.arrival_ms - NOW_MS for ruling in rulings] == [0, 1, 2]


def test_a_restore_takes_the_arrival_that_counted_from_the_record() -> None:
    one, other = state(), state()
    for each, ruling in zip(AHEAD, ruled(one), strict=True):
        decision, _ = encode_ruling(ruling, SCHEME)
        other.follow(
            decode_block(encode_block(each, SCHEME), SCHEME, ""),
            decode_ruling(What.DECISION, decision, SCHEME, ""),
        )
    assert saved(other) == saved(one)


def arrivals(world: World) -> list[int]:
    """How far each recorded arrival lies behind the broker's clock of the end, in ms."""
    assert len(world.cluster.values(OUTPUT)) == 3
    return [world.clock.now_ms() - ruling.arrival_ms for ruling in recorded(world)]


def played(world: World, ahead_s: float) -> World:
    """Three messages, read by a worker whose clock is wrong and judged by an index whose clock is right."""
    world.start("a", roles="worker", ahead_s=ahead_s)
    world.start("b", roles="index")
    for values in ([b"x", b"y"], [b"z"]):
        world.produce("in", 0, values)
        world.settle()
    return world


@pytest.mark.parametrize("ahead_s", [10 * 86_400.0, -10 * 86_400.0])
def test_a_block_arrives_by_the_broker_s_clock_and_not_its_worker_s(ahead_s: float) -> None:
    world = played(World(partitions=1), ahead_s)
    assert all(0 <= behind <= 60_000 for behind in arrivals(world))


def test_a_clock_ahead_is_not_believed_where_the_log_keeps_writers_times() -> None:
    world = World(partitions=1)
    del world.cluster.topics[LOG.topic].settings["message.timestamp.type"]
    assert min(arrivals(played(world, 10 * 86_400.0))) >= -60_000
