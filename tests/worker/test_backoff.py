"""How often a worker asks while answers are outstanding."""

from __future__ import annotations

import pytest

from tests.memory.broker import ManualClock
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.worker.backoff import FETCH_S, Patience, PollBackoff


@pytest.mark.parametrize(
    ("unanswered", "partitions", "pause_s"),
    [(1, 0, 0.01), (16, 2, 0.01), (32, 2, 0.02), (320, 2, 0.2), (10_000, 2, 1.0)],
)
def test_the_pause_grows_with_the_blocks_that_wait_for_each_partition(
    unanswered: int, partitions: int, pause_s: float
) -> None:
    clock = ManualClock()
    pace = PollBackoff(clock, 0.01)
    pace.polled(unanswered, partitions)
    assert pace.left_s() == pytest.approx(pause_s)
    clock.sleep(pause_s + 0.001)
    assert pace.left_s() == 0


def test_the_pause_is_as_long_as_an_answer_usually_takes() -> None:
    clock = ManualClock()
    pace = PollBackoff(clock, 0.05)

    def pause_s(waited_s: float) -> float:
        for _ in range(100):
            pace.answered(waited_s)
        pace.polled(1, 1)
        return pace.left_s()

    assert pause_s(0.12) == pytest.approx(0.12, abs=1e-3)
    assert pause_s(0.01) == pytest.approx(0.05, abs=1e-3), "not shorter than that"
    assert pause_s(90.0) == pytest.approx(0.25, abs=1e-3), "an index that was away is asked again soon"
    pace.answered(0.05)
    pace.polled(1, 1)
    assert 0.2 < pace.left_s() < 0.25, "one quick answer is not usual yet"


def test_the_pause_grows_with_the_partitions_that_a_poll_brings_messages_of() -> None:
    clock = ManualClock()
    pace = PollBackoff(clock, 0.05)
    for blocks, pause_s in ((4, 0.05), (100, 0.5), (1_000, 1.0)):
        pace.polled(0, 1_000)
        clock.sleep(0.02)
        pace.asked(blocks)
        assert pace.left_s() == pytest.approx(pause_s - 0.02), "from the poll on, not from its end"


def test_what_was_asked_for_is_polled_soon() -> None:
    clock = ManualClock()
    pace = PollBackoff(clock, 0.05)
    pace.polled(1, 1)
    pace.fetches()
    assert pace.left_s() == pytest.approx(FETCH_S)
    pace.polled(1, 1)
    assert pace.left_s() == pytest.approx(0.05)


def test_an_index_that_stands_still_is_not_flooded_with_small_blocks() -> None:
    """Ten seconds without an answer: hundreds of blocks, where asking every 10 ms would make 2,000."""
    clock = ManualClock()
    pace, blocks = PollBackoff(clock, 0.01), 1
    while clock.monotonic_s() < 10:
        pace.polled(blocks, 2)
        clock.sleep(pace.left_s() + 0.0001)
        blocks += 2
    assert 100 < blocks < 300


def test_a_worker_is_patient_with_a_slow_index_and_asks_for_less() -> None:
    clock = ManualClock()
    patience, at = Patience(clock, answer_s=10.0, max_rows=5_000), Partition("posts", 0)
    patience.answered(at, 0.2)
    assert (patience.of(at), patience.rows) == (10.0, 5_000)
    assert patience.expire(at) == 10.0
    assert (patience.of(at), patience.rows) == (20.0, 1_250)
    patience.answered(at, 18.0)
    assert (patience.of(at), patience.rows) == (36.0, 625)
    patience.answered(at, 1.0)
    assert (patience.of(at), patience.rows) == (36.0, 1_250)
    clock.sleep(200.0)
    assert patience.of(at) == 10.0
    for _ in range(20):
        patience.expire(at)
    assert (patience.of(at), patience.rows) == (600.0, 64)
    patience.answered(at, 1_000.0)
    assert patience.of(at) == 120.0
