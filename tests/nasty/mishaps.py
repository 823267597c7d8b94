"""What makes a process of a hostile run slow, or its transactions fail."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from tests.memory.broker import ManualClock
from tests.twins import HashSieve
from twinsieve.pipeline.broker.records import AbortableError
from twinsieve.stages.contract import Batch, Verdicts
from twinsieve.stages.near.answers import NO_ANSWERS, Answer
from twinsieve.stages.window.segments import SegmentId

_SEND_S = (0.0, 0.0, 0.1, 0.5, 2.0, 5.0)


def slow_sieve(clock: ManualClock, row_s: float) -> type[HashSieve]:
    """A sieve that takes this time for each row."""

    class SlowSieve(HashSieve):
        def judge(self, batch: Batch, *, answers: Mapping[SegmentId, Answer] = NO_ANSWERS) -> Verdicts:
            clock.sleep(row_s * len(batch))
            return super().judge(batch, answers=answers)

    return SlowSieve


def slow_hook(clock: ManualClock, draw: random.Random) -> Callable[[str], Any]:
    """A hook for outputs that take long to write to, in some phases."""
    left = draw.randint(1, 300)
    slow_s = 0.0

    def hook(step: str) -> None:
        nonlocal left, slow_s
        left -= 1
        if left <= 0:
            left, slow_s = draw.randint(10, 300), draw.choice(_SEND_S)
        if step == "transactor.send.after" and slow_s:
            clock.sleep(slow_s)

    return hook


def refusing_hook(draw: random.Random) -> Callable[[str], Any]:
    """A hook for a broker that refuses some commits, one after the other."""
    accepted, refused = draw.randint(1, 40), 0

    def hook(step: str) -> None:
        nonlocal accepted, refused
        if step != "transactor.commit.before":
            return
        accepted -= 1
        if accepted < 0:
            refused, accepted = draw.randint(1, 5), draw.randint(1, 40)
        if refused:
            refused -= 1
            raise AbortableError("commit: the broker refuses it")

    return hook
