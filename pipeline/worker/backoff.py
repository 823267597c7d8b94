"""How often a worker polls while answers are outstanding, and how it goes on after a failed transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import Partition

_FEW_BLOCKS = 8
_MAX_S = 1.0
_FIRST_REFUSED_S = 0.1
_MAX_REFUSED_S = 60.0
_QUICK_PART = 4
"""A transaction that took less than this part of its time-out may be followed by one of twice the size."""
_MAX_HALVINGS = 8
"""Of 32 MiB that leaves 128 KiB. Less would make blocks by the hundred of what is asked anew each time."""


class PollBackoff:
    """When to poll input again.

    Too late, and what arrives meanwhile waits for the next round twice; too often, and the index judges
    single messages. With more blocks than a few for each partition the pause grows in proportion, to a second
    at most: an index that is behind gets fewer and larger blocks, never more and smaller ones.

    again_s: the pause while no more than a few wait
    """

    def __init__(self, clock: Clock, again_s: float) -> None:
        self._clock = clock
        self._again_s = again_s
        self._next_s = clock.monotonic_s()

    def left_s(self) -> float:
        """Seconds until the next poll; 0 when it is due."""
        return max(0.0, self._next_s - self._clock.monotonic_s())

    def polled(self, unanswered: int, partitions: int) -> None:
        """Input was polled. unanswered: blocks, of all partitions together"""
        crowd = unanswered / (_FEW_BLOCKS * max(1, partitions))
        self._next_s = self._clock.monotonic_s() + min(_MAX_S, self._again_s * max(1.0, crowd))


@dataclass(frozen=True, slots=True)
class Refused:
    """How a partition goes on whose transaction failed.

    pause_s: before its next session, twice as long after each failure; 0.0 from the next success on
    halvings: of what it asks for, and of what a transaction takes, at once
    """

    pause_s: float = 0.0
    halvings: int = 0


class Refusals:
    """What partitions whose transactions failed may take at once: what was too much would fail for ever.

    max_rows, max_bytes: of one transaction, and of one block, where nothing failed
    timeout_s: after which a broker aborts a transaction

    >>> at, refusals = Partition("posts", 0), Refusals(20_000, 32 << 20, 10.0)
    >>> refusals.again([at])
    >>> refusals.again([at])
    >>> refusals.of, refusals.at_once([at])
    ({Partition(topic='posts', number=0): Refused(pause_s=0.2, halvings=2)}, (5000, 8388608))
    >>> refusals.passed([at], took_s=0.1)
    >>> refusals.of
    {Partition(topic='posts', number=0): Refused(pause_s=0.0, halvings=1)}
    """

    def __init__(self, max_rows: int, max_bytes: int, timeout_s: float) -> None:
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._quick_s = timeout_s / _QUICK_PART
        self.of: dict[Partition, Refused] = {}

    def halvings(self, partitions: Iterable[Partition]) -> int:
        """How often what these take at once is halved: as often as one of them needs."""
        refused = filter(None, map(self.of.get, partitions)) if self.of else ()
        return max((each.halvings for each in refused), default=0)

    def at_once(self, partitions: Iterable[Partition]) -> tuple[int, int]:
        """Rows and bytes of one transaction of these, and of one block."""
        halvings = self.halvings(partitions)
        return max(1, self._max_rows >> halvings), max(1, self._max_bytes >> halvings)

    def failed_last(self, partition: Partition) -> bool:
        """Whether its last transaction failed, so that the next should hold nobody else's messages."""
        return partition in self.of and self.of[partition].pause_s > 0

    def again(self, partitions: Iterable[Partition]) -> None:
        """A transaction of these failed."""
        for partition in partitions:
            before = self.of.get(partition, Refused())
            pause_s = min(_MAX_REFUSED_S, max(_FIRST_REFUSED_S, 2 * before.pause_s))
            self.of[partition] = Refused(pause_s, min(_MAX_HALVINGS, before.halvings + 1))

    def passed(self, partitions: Iterable[Partition], took_s: float) -> None:
        """A transaction of these went through. Where twice as much would have, they may take that next."""
        for partition in self.of.keys() & partitions:
            halvings = self.of.pop(partition).halvings - (took_s < self._quick_s)
            if halvings > 0:
                self.of[partition] = Refused(0.0, halvings)
