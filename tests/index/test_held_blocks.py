"""For which blocks the index waits while shards answer, and for which not."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.memory.broker import ManualClock
from tests.shards.holding_shards import LOG, SCHEME, App
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.index.held_blocks import HeldBlocks
from twinsieve.pipeline.index.segment_waits import SegmentWaits
from twinsieve.pipeline.wire.block import encode_block
from twinsieve.stages.window.segments import SegmentId

SEALED = [SegmentId(0, 60, 60, bytes(16))]


class _Missing:
    """Answers that are expected for every block, and never come."""

    def __init__(self) -> None:
        self.waited_s = 0.0
        self.waits = SegmentWaits(14.0, ManualClock())
        self.waits.heard(SEALED[0], "a", 0)

    def read(self, numbers: set[int], topic_id: bytes) -> None:
        pass

    def poll(self, timeout_s: float) -> None:
        self.waited_s += timeout_s

    def awaited(self, offset: int, segments: Sequence[SegmentId]) -> Sequence[SegmentId]:
        return segments


class _Held:
    """Three blocks of an app that wait."""

    def __init__(self, app: App) -> None:
        self.answers = _Missing()
        topic = SimpleNamespace(look=lambda: None, numbers={0, 1, 2}, topic_id=bytes(16))
        self.blocks = HeldBlocks(LOG, SCHEME, cast("Any", topic), cast("Any", self.answers))
        values: list[bytes | None] = [encode_block(app.block(number), SCHEME) for number in range(3)]
        values.append(encode_block(app.block(3), bytes(16)))
        self.blocks.add([Records.of(LOG, offsets=[0, 1, 2, 3], timestamps_ms=[0] * 4, values=values)])

    def answered(self, *, asks: bool, sealed: Sequence[SegmentId] = SEALED) -> list[int]:
        return [read.offset for read in self.blocks.answered(1.0, 0.0, sealed, lambda block: asks)]


@pytest.fixture
def held(tmp_path_factory: pytest.TempPathFactory) -> _Held:
    return _Held(App(tmp_path_factory.mktemp("app")))


def test_a_block_that_asks_waits_and_those_behind_it_too(held: _Held) -> None:
    assert held.answered(asks=True) == []
    assert held.answers.waited_s > 0
    assert held.answered(asks=True, sealed=[]) == [0, 1, 2, 3]


def test_a_block_that_looks_nothing_up_is_not_waited_for(held: _Held) -> None:
    """The first alone: what the next one asks depends on the verdicts on it."""
    for offset in range(3):
        assert held.answered(asks=False)[0] == offset
        held.blocks.drop(1)
    assert held.answered(asks=True) == [3], "nobody answers for what he cannot read"
    assert held.answers.waited_s == 0


class _Consumer:
    """Notes whether it reads the log."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def pause(self, partitions: Sequence[Partition]) -> None:
        self.calls.append("pause")

    def resume(self, partitions: Sequence[Partition]) -> None:
        self.calls.append("resume")


def test_others_are_polled_while_blocks_wait_up_to_a_number_and_to_bytes(held: _Held) -> None:
    consumer = _Consumer()
    log = cast("Any", consumer)
    assert held.blocks.room(log, 6, 1 << 20) == 2
    assert consumer.calls == []
    assert held.blocks.room(log, 4, 1 << 20) == 1
    assert held.blocks.room(log, 3, 1 << 20) == 1
    assert consumer.calls == ["pause"], "a poll of no messages is none"
    assert held.blocks.room(log, 6, 1) == 1
    assert consumer.calls == ["pause"]
    held.blocks.drop(4)
    assert held.blocks.room(log, 4, 0) == 4, "without blocks one is always read"
    assert consumer.calls == ["pause", "resume"]
