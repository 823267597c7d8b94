"""How often a worker polls while answers are outstanding, how long it waits for them, and what it does after
a failed transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import Partition

_AWAY_S = 600.0
"""Limit of the time without an answer after which a session expires, unless the settings say more; that time
doubles with each expiry."""
_SLOW_S = 120.0
"""The same with an index that answers, however slowly: twice the longest wait of late."""
_OF_LATE = 5.0
"""A long wait lengthens the time-out for this many times the length of that time-out."""
_LEAST_ROWS = 64
_FEW_BLOCKS = 8
_MAX_S = 1.0
_REFUSED = Pauses(first_s=0.1, longest_s=60.0)
_QUICK_PART = 4
"""A transaction that took less than this part of its time-out may be followed by one of twice the size."""
_MAX_HALVINGS = 8
"""This leaves 128 KiB of 32 MiB. A smaller limit would cut each new attempt into hundreds of blocks."""


class Patience:
    """How long to wait for answers before asking again, and how many rows to ask for in a block.

    An absent index gets requests less and less often. A slow index gets the time that it needs, and small
    blocks: a worker that asks again too early discards the answers on their way, and emits nothing.

    expired: partitions whose last session had no answer, and for how long the next may go without one
    rows: of one block, at most
    """

    def __init__(self, clock: Clock, answer_s: float, max_rows: int) -> None:
        self._clock = clock
        self._answer_s = answer_s
        self._max_rows = max_rows
        self._away = Pauses(answer_s, max(answer_s, _AWAY_S))
        self._slow_s = self._slow_until_s = 0.0
        self.expired: dict[Partition, float] = {}
        self.rows = max_rows

    def of(self, partition: Partition) -> float:
        """Seconds without an answer after which a session of this partition expires."""
        slow_s = self._slow_s if self._clock.monotonic_s() < self._slow_until_s else 0.0
        return max(self.expired.get(partition, self._answer_s), slow_s)

    def expire(self, partition: Partition) -> float:
        """Note that a session of this partition expired; returns the seconds that it waited."""
        waited_s = self.of(partition)
        self.expired[partition] = self._away.after(waited_s)
        self.rows = max(min(_LEAST_ROWS, self._max_rows), self.rows // 4)
        return waited_s

    def answered(self, partition: Partition, waited_s: float) -> None:
        """The partition had an answer after that time."""
        self.expired.pop(partition, None)
        now_s, slow_s = self._clock.monotonic_s(), min(_SLOW_S, 2 * waited_s)
        if now_s >= self._slow_until_s or slow_s >= self._slow_s:
            self._slow_s, self._slow_until_s = slow_s, now_s + _OF_LATE * slow_s
        if slow_s >= self._answer_s:
            self.rows = max(min(_LEAST_ROWS, self._max_rows), self.rows // 2)
        elif 2 * slow_s < self._answer_s:
            self.rows = min(self._max_rows, 2 * self.rows)


class PollBackoff:
    """When to poll input again.

    If polls are too rare, new messages wait for two rounds; if they are too frequent, the index judges single
    messages. With more blocks than a few for each partition the pause grows in proportion, to a second
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
    """How a partition continues after its transaction failed.

    pause_s: before its next session, twice as long after each failure; 0.0 from the next success on
    halvings: of what it asks for, and of what a transaction takes, at once
    """

    pause_s: float = 0.0
    halvings: int = 0


class Refusals:
    """What partitions whose transactions failed may take at once: a transaction that is too large would fail
    each time.

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
        return max((refusal.halvings for refusal in refused), default=0)

    def at_once(self, partitions: Iterable[Partition]) -> tuple[int, int]:
        """Rows and bytes of one transaction of these, and of one block."""
        halvings = self.halvings(partitions)
        return max(1, self._max_rows >> halvings), max(1, self._max_bytes >> halvings)

    def failed_last(self, partition: Partition) -> bool:
        """Whether its last transaction failed, so that the next one should hold no messages of other
        partitions."""
        return partition in self.of and self.of[partition].pause_s > 0

    def again(self, partitions: Iterable[Partition]) -> None:
        """A transaction of these failed."""
        for partition in partitions:
            before = self.of.get(partition, Refused())
            pause_s = _REFUSED.after(before.pause_s)
            self.of[partition] = Refused(pause_s, min(_MAX_HALVINGS, before.halvings + 1))

    def passed(self, partitions: Iterable[Partition], took_s: float) -> None:
        """A transaction of these went through. Where twice as much would have, they may take that next."""
        for partition in self.of.keys() & partitions:
            halvings = self.of.pop(partition).halvings - (took_s < self._quick_s)
            if halvings > 0:
                self.of[partition] = Refused(0.0, halvings)
