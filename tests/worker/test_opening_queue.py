"""Which partitions a worker opens next."""

from __future__ import annotations

from tests.memory.broker import ManualClock
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.worker.openings import OpeningQueue

_ONE, _TWO = Partition("posts", 0), Partition("posts", 1)


def test_partitions_that_never_failed_are_opened_together_and_others_alone() -> None:
    clock = ManualClock()
    queue = OpeningQueue(clock)
    queue.add([_ONE, _TWO])
    assert queue.due({_ONE, _TWO}) == [_ONE, _TWO]
    queue.postpone([_ONE, _TWO])
    assert queue.due({_ONE, _TWO}) == []
    clock.sleep(1.0)
    assert queue.due({_ONE, _TWO}) == [_ONE]
