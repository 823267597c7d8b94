"""Messages arrive when the broker writes their block: no clock of a process counts, and a restore needs none."""

from __future__ import annotations

import pytest

from tests.driver import LOG, OUTPUT, SCHEME, World
from tests.model.test_hidden_topics import block
from tests.model.test_hidden_topics import recorded as as_restored
from tests.model.test_mixed_versions import recorded
from tests.twins import ruled
from tests.whole_state import to_bytes
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.wire.block import BlockFlag, decode_block, encode_block
from twinsieve.pipeline.wire.ruling import Ruling
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
    return to_bytes(index.sieve)


AHEAD = [
    block("t", 1, 0, "a", BlockFlag.START, NOW_MS),
    block("t", 1, 1, "b", BlockFlag.NONE, NOW_MS + DAYS_MS),
    block("t", 1, 2, "a", BlockFlag.NONE, NOW_MS + 1_000),
]


def all_ruled(index: IndexState) -> list[Ruling]:
    return [ruled(index, each, place, NOW_MS + place) for place, each in enumerate(AHEAD)]


def test_times_of_the_future_are_bounded_by_arrival_and_expire_nothing() -> None:
    rulings = all_ruled(state())
    assert [int(ruling.verdicts.kinds[0]) for ruling in rulings] == [Kind.UNIQUE, Kind.UNIQUE, Kind.EXACT]
    assert [ruling.arrival_ms - NOW_MS for ruling in rulings] == [0, 1, 2]


def test_a_restore_takes_the_arrival_that_counted_from_the_record() -> None:
    one, other = state(), state()
    for each, ruling in zip(AHEAD, all_ruled(one), strict=True):
        other.follow([(decode_block(encode_block(each, SCHEME), SCHEME, ""), as_restored(ruling))])
    one.sieve.judged_by = other.sieve.judged_by = ""  # the record of this test names no rules
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
