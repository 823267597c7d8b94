"""A worker whose clock runs ahead cannot expire the windows; a restore needs no clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.driver import OUTPUT, SCHEME, World
from tests.model.test_mixed_versions import recorded
from tests.twins import TinyScheme, batch_of
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.wire.block import Block, BlockFlag, decode_block, encode_block
from twinsieve.pipeline.wire.frame import What
from twinsieve.pipeline.wire.ruling import Ruling, decode_ruling, encode_ruling
from twinsieve.pipeline.worker import asks as worker_asks
from twinsieve.stages.contract import ExactConfig, Kind, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.sieve import Sieve

NOW_MS = 1_600_000_000_000
DAYS_MS = 10 * 86_400_000
HOUR_MS = 3_600_000


def state() -> IndexState:
    exact = ExactConfig("trie", window=Window(100, HOUR_MS))
    return IndexState(Sieve(SieveConfig(exact, NearConfig(method="none", window=Window(5)))))


def saved(index: IndexState) -> bytes:
    assert isinstance(index.sieve, Sieve)
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
    return [index.rule(each, place, NOW_MS + 60_000) for place, each in enumerate(AHEAD)]


def test_a_clock_that_runs_ahead_with_messages_of_the_future_expires_nothing() -> None:
    rulings = ruled(state())
    assert [int(ruling.verdicts.kinds[0]) for ruling in rulings] == [Kind.UNIQUE, Kind.UNIQUE, Kind.EXACT]
    assert [ruling.arrival_ms - NOW_MS for ruling in rulings] == [0, 60_000, 1_000]


def test_a_restore_takes_the_arrival_that_counted_from_the_record() -> None:
    one, other = state(), state()
    for each, ruling in zip(AHEAD, ruled(one), strict=True):
        decision, _ = encode_ruling(ruling, SCHEME)
        other.follow(
            decode_block(encode_block(each, SCHEME), SCHEME, ""),
            decode_ruling(What.DECISION, decision, SCHEME, ""),
        )
    assert saved(other) == saved(one)


def test_the_index_says_that_a_clock_runs_ahead_and_records_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(partitions=1)
    world.start("a")

    def ahead(each: Block, scheme: bytes) -> bytes:
        return encode_block(replace(each, arrival_ms=each.arrival_ms + DAYS_MS), scheme)

    monkeypatch.setattr(worker_asks, "encode_block", ahead)
    world.produce("in", 0, [b"x", b"y"])
    world.settle()
    world.produce("in", 0, [b"z"])
    world.settle()
    index = world.processes[0].index
    assert index is not None
    (notice,) = index.notices
    assert "in[0]: the clock of its worker is 864000 s ahead" in notice
    assert max(ruling.arrival_ms for ruling in recorded(world)) <= world.clock.now_ms() + 60_000
    assert len(world.cluster.values(OUTPUT)) == 3
