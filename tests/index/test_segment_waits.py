"""How long the index waits for a segment, and when it looks up there itself."""

from __future__ import annotations

import pytest

from tests.memory.broker import ManualClock
from twinsieve.pipeline.index.segment_waits import ALONE_S, SegmentWaits
from twinsieve.stages.window.segments import SegmentId

PATIENCE_S = 10.0
ONE, TWO = SegmentId(0, 50, 50, bytes(16)), SegmentId(50, 100, 50, bytes(16))
ROWS = 1_000
"""Of a block."""


class _Index:
    """An index at a block, whose own look-up of a row takes a millisecond in both segments."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.waits = SegmentWaits(PATIENCE_S, self.clock)
        self.at = 0
        self.behind_s = 0.0
        self.waits.begin(0)
        self.waits.looked_up(None, 1_000, 1.0)
        for segment in (ONE, TWO):
            self.waits.looked_up(segment, 1_000, 1.0)
            self.waits.heard(segment, "a", 0)

    @property
    def awaited(self) -> list[SegmentId]:
        return self.waits.awaited(self.at, [ONE, TWO])

    def stand(self, seconds: float, *, behind_s: float = 5.0) -> float:
        """Wait for the first block, this long at most; returns how long that was."""
        self.behind_s = behind_s
        began_s = self.clock.monotonic_s()
        while self.awaited and self.clock.monotonic_s() < began_s + seconds:
            self.waits.stand(self.at, ROWS, behind_s, self.awaited)
            self.clock.sleep(0.01)
        self.waits.stand(self.at, ROWS, behind_s, self.awaited)
        return self.clock.monotonic_s() - began_s

    def judge(self, *segments: SegmentId) -> None:
        """Judge the first block with the answers of these."""
        self.waits.stand(self.at, ROWS, self.behind_s, [])
        self.waits.taken(segments, ROWS)
        self.at += 1
        self.waits.passed(self.at)

    def say(self, shard: str = "a") -> None:
        """A shard says of both segments that it has read what the index has judged."""
        for segment in (ONE, TWO):
            self.waits.heard(segment, shard, self.at)


@pytest.fixture
def index() -> _Index:
    return _Index()


def test_one_patience_is_for_all_blocks_that_wait(index: _Index) -> None:
    assert index.stand(60.0, behind_s=0.0) == pytest.approx(PATIENCE_S, abs=0.02)
    for _ in range(10):
        assert index.awaited == []
        index.judge()
    for segment in (ONE, TWO):
        index.waits.heard(segment, "a", 0)
    assert index.awaited == [], "it has not read the block that was waited for"
    index.say()
    assert index.awaited == [ONE, TWO]


def test_the_index_goes_alone_once_it_has_waited_longer_than_its_own_look_up_takes(index: _Index) -> None:
    # It would take a second for each segment.
    assert index.stand(60.0) == pytest.approx(2.0, abs=0.1)
    assert index.waits.late([ONE, TWO]) == {ONE: "a", TWO: "a"}
    assert not index.waits.is_answered(ONE)
    for _ in range(50):
        index.clock.sleep(1.0)
        index.judge()
        index.say()
        assert index.awaited == []
    index.clock.sleep(ALONE_S - 50.0)
    index.say()
    assert index.awaited == [ONE, TWO], "it tries again"
    assert index.stand(60.0) == pytest.approx(2.0, abs=0.1)
    assert index.awaited == []


def test_an_index_that_keeps_up_waits_and_holds_it_against_nobody(index: _Index) -> None:
    assert index.stand(9.0, behind_s=0.5) == pytest.approx(9.0, abs=0.02)
    assert index.waits.late([ONE, TWO]) == {}
    index.judge(ONE, TWO)
    index.say()
    assert index.stand(60.0) == pytest.approx(2.25, abs=0.1), "as long as if it had not waited before"


def test_the_wait_counts_from_its_beginning_once_the_index_is_behind(index: _Index) -> None:
    assert index.stand(1.5, behind_s=0.5) == pytest.approx(1.5, abs=0.02)
    assert index.stand(60.0) == pytest.approx(0.5, abs=0.1)
    assert index.awaited == []


def test_an_index_that_has_looked_nothing_up_yet_goes_alone_soon() -> None:
    new = SegmentWaits(PATIENCE_S, clock := ManualClock())
    new.begin(0)
    new.heard(ONE, "a", 0)
    for _ in range(160):
        new.stand(0, ROWS, 5.0, new.awaited(0, [ONE]))
        clock.sleep(0.01)
    assert new.awaited(0, [ONE]) == []
    new.looked_up(ONE, ROWS, 20.0)
    assert new.awaited(0, [ONE]) == [ONE], "it takes much longer itself"


def test_the_first_rows_in_a_cold_segment_say_little(index: _Index) -> None:
    index.waits = SegmentWaits(PATIENCE_S, index.clock)
    for segment in (ONE, TWO):
        index.waits.looked_up(segment, 20, 2.0)
        index.waits.looked_up(segment, 20_000, 2.0)
        index.waits.heard(segment, "a", 0)
    assert index.stand(60.0) == pytest.approx(0.5, abs=0.1)


def test_who_answers_in_time_again_is_waited_for_as_before(index: _Index) -> None:
    index.stand(60.0)
    index.clock.sleep(ALONE_S)
    index.say()
    assert index.waits.late([ONE, TWO])
    index.judge(ONE, TWO)
    index.say()
    assert index.waits.late([ONE, TWO]) == {}
    assert index.waits.is_answered(ONE)


def test_what_shards_have_spared_counts_and_not_much(index: _Index) -> None:
    for _ in range(2):
        index.judge(ONE, TWO)
        index.say()
    assert index.stand(60.0) == pytest.approx(2.0 + 0.25, abs=0.1)
    for _ in range(200):
        index.judge(ONE, TWO)
    index.clock.sleep(ALONE_S)
    index.say("b")
    assert index.stand(60.0) == pytest.approx(2.0 + 0.25, abs=0.1)


def test_a_segment_that_is_answered_is_not_blamed_for_another_one(index: _Index) -> None:
    index.waits.heard(ONE, "b", 1)
    assert index.awaited == [TWO]
    index.stand(60.0)
    assert index.waits.late([ONE, TWO]) == {TWO: "a"}


def test_a_short_pause_of_a_shard_is_waited_for(index: _Index) -> None:
    for segment in (ONE, TWO):
        for _ in range(50):
            index.waits.looked_up(segment, 1_000_000, 1.0)
    assert index.stand(60.0) == pytest.approx(0.5, abs=0.1), "though a look-up takes a millisecond"


def test_a_new_segment_of_a_late_shard_is_not_waited_for_first(index: _Index) -> None:
    index.stand(60.0)
    new, other = SegmentId(100, 150, 50, bytes(16)), SegmentId(150, 200, 50, bytes(16))
    index.waits.heard(new, "a", 0)
    index.waits.heard(other, "b", 0)
    assert index.waits.awaited(0, [new, other]) == [other]
    assert index.waits.late([new]) == {new: "a"}
    index.clock.sleep(ALONE_S)
    index.waits.heard(new, "a", 0)
    assert index.waits.awaited(0, [new]) == [new]


def test_another_shard_that_takes_over_is_tried_at_once(index: _Index) -> None:
    index.stand(60.0)
    index.judge()
    index.say()
    assert index.awaited == []
    index.say("b")
    assert index.awaited == [ONE, TWO]


def test_an_index_whose_own_look_up_takes_longer_than_it_seemed_waits_again(index: _Index) -> None:
    index.stand(60.0)
    assert index.awaited == []
    for _ in range(60):
        index.waits.looked_up(ONE, 100, 1.0)
    assert index.awaited == [ONE], "its file is on a slow disk"
