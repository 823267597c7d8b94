"""Batches of the input that cannot be read, until somebody repairs them, retention takes them, or they are skipped."""

from __future__ import annotations

import random
from typing import Literal

from tests.driver import World
from twinsieve.pipeline.broker.records import Partition

_LONGEST = 6


class UnreadableInput:
    """on_unreadable: what the workers of a run do."""

    def __init__(self, world: World, draw: random.Random) -> None:
        self._world = world
        self._draw = draw
        self.on_unreadable: Literal["hold", "skip"] = draw.choice(["hold", "skip"])

    def damage(self, at: Partition) -> None:
        """A batch is damaged, whether it came out or not."""
        log = self._world.cluster.log(at)
        if log.beginning == log.end:
            return
        start = self._draw.randrange(log.beginning, log.end)
        batch = range(start, min(log.end, start + self._draw.randint(1, _LONGEST)))
        self._world.cluster.faults.unreadable.setdefault(at, []).append(batch)
        if self.on_unreadable == "skip":
            self._world.history.cannot_read(at, batch)

    def repair(self) -> None:
        """Every batch can be read again."""
        self._world.cluster.faults.unreadable.clear()
