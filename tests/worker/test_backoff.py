"""How often a worker asks while answers are outstanding."""

from __future__ import annotations

import pytest

from tests.memory.broker import ManualClock
from twinsieve.pipeline.worker.backoff import PollBackoff


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


def test_an_index_that_stands_still_for_a_while_is_not_buried_in_small_blocks() -> None:
    """Ten seconds without an answer: hundreds of blocks, where asking every 10 ms would make 2,000."""
    clock = ManualClock()
    pace, blocks = PollBackoff(clock, 0.01), 1
    while clock.monotonic_s() < 10:
        pace.polled(blocks, 2)
        clock.sleep(pace.left_s() + 0.0001)
        blocks += 2
    assert 100 < blocks < 300
