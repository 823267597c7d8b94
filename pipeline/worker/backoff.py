"""How often a worker polls while answers are outstanding, how long it waits for them, and what it does after
a failed transaction.

A worker polls less often the more blocks are unanswered. At a fixed short interval, an index that is behind
would get many small blocks and fall further behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import Partition

_AWAY_S = 600.0
"""A session expires after a time without an answer. That time doubles with each expiry, up to this limit, or
up to the configured time if that is longer."""
_SLOW_S = 120.0
"""If the index answers slowly, a session expires after twice the longest recent wait, at most after this
time."""
_OF_LATE = 5.0
"""A long wait lengthens the time-out. The longer time-out is in force for this many times its own length."""
_LEAST_ROWS = 64
_FEW_BLOCKS = 8
_BLOCK_S = 0.005
"""Least pause for each block that a poll makes. A block takes about 2 ms of CPU in the worker, the index and
the standby together, whatever its number of messages."""
_MAX_S = 1.0
FETCH_S = 0.01
"""How long records that were asked for may take."""
_LONGEST_USUAL_S = 0.25
_WEIGHT = 1 / 8
"""Weight of the last answer in the usual time of answers."""
_REFUSED = Pauses(first_s=0.1, longest_s=60.0)
_QUICK_PART = 4
"""If a transaction took less than 1 / _QUICK_PART of its time-out, the next one may be twice as large."""
_MAX_HALVINGS = 8
"""Eight halvings reduce 32 MiB to 128 KiB. A still smaller limit would cut each new attempt into hundreds of
blocks."""


class Patience:
    """How long to wait for answers before asking again, and how many rows to ask for in a block.

    An absent index gets requests less and less often. A slow index gets the time that it needs, and small
    blocks, because a worker that asks again too early discards the answers on their way and emits nothing.

    expired: partitions whose last session got no answer, each with the seconds that the next one may wait
    rows: the current limit for the rows of one block
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
        """Note that this partition got an answer after `waited_s` seconds; adapt time-out and block size."""
        self.expired.pop(partition, None)
        now_s, slow_s = self._clock.monotonic_s(), min(_SLOW_S, 2 * waited_s)
        if now_s >= self._slow_until_s or slow_s >= self._slow_s:
            self._slow_s, self._slow_until_s = slow_s, now_s + _OF_LATE * slow_s
        if slow_s >= self._answer_s:
            self.rows = max(min(_LEAST_ROWS, self._max_rows), self.rows // 2)
        elif 2 * slow_s < self._answer_s:
            self.rows = min(self._max_rows, 2 * self.rows)


class PollBackoff:
    """Decides when the input is polled again while blocks are unanswered.

    If polls are too rare, new messages wait for two rounds; if they are too frequent, the index judges single
    messages. So the pause is the time after which an answer usually comes out, from `again_s` to a quarter of
    a second: where all is slow, more frequent polls make it slower. If more than `_FEW_BLOCKS` blocks per
    partition are unanswered, the pause grows in proportion, up to one second. So an index that is behind gets
    fewer and larger blocks, never more and smaller ones. It also grows with the number of partitions that a
    poll brings messages of, because each of them becomes a block.

    again_s: the shortest pause
    """

    def __init__(self, clock: Clock, again_s: float) -> None:
        self._clock = clock
        self._again_s = self._usual_s = again_s
        self._polled_s = self._next_s = clock.monotonic_s()

    def left_s(self) -> float:
        """Seconds until the next poll; 0 when it is due."""
        return max(0.0, self._next_s - self._clock.monotonic_s())

    def answered(self, waited_s: float) -> None:
        """Note that a block was answered and emitted after this time."""
        waited_s = min(max(waited_s, self._again_s), _LONGEST_USUAL_S)
        self._usual_s += _WEIGHT * (waited_s - self._usual_s)

    def fetches(self) -> None:
        """Note that the records of the next poll are on their way."""
        self._next_s = self._clock.monotonic_s() + FETCH_S

    def polled(self, unanswered: int, partitions: int) -> None:
        """Set the time of the next poll after one poll. unanswered: number of blocks, in all partitions
        together"""
        crowd = unanswered / (_FEW_BLOCKS * max(1, partitions))
        self._polled_s = self._clock.monotonic_s()
        self._next_s = self._polled_s + min(_MAX_S, self._usual_s * max(1.0, crowd))

    def asked(self, blocks: int) -> None:
        """Note how many blocks the last poll has made."""
        self._next_s = max(self._next_s, self._polled_s + min(_MAX_S, blocks * _BLOCK_S))


@dataclass(frozen=True, slots=True)
class Refused:
    """How a partition continues after its transaction failed.

    pause_s: the pause before its next session, doubled after each failure; 0.0 after the next success
    halvings: how often the size limit of its blocks and transactions is halved
    """

    pause_s: float = 0.0
    halvings: int = 0


class Refusals:
    """Smaller size limits for partitions whose transactions failed, because a transaction that is too large
    would fail each time.

    max_rows, max_bytes: limits of one transaction, and of one block, for partitions without a failure
    timeout_s: time after which the broker aborts a transaction
    of: the partitions that still have smaller limits

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
        """How often the size limit is halved for these partitions together: the largest number of any of
        them."""
        refused = filter(None, map(self.of.get, partitions)) if self.of else ()
        return max((refusal.halvings for refusal in refused), default=0)

    def at_once(self, partitions: Iterable[Partition]) -> tuple[int, int]:
        """Limits for the rows and bytes of one transaction, and of one block, of these partitions."""
        halvings = self.halvings(partitions)
        return max(1, self._max_rows >> halvings), max(1, self._max_bytes >> halvings)

    def failed_last(self, partition: Partition) -> bool:
        """Whether the partition's last transaction failed. If so, its next transaction should hold no
        messages of other partitions."""
        return partition in self.of and self.of[partition].pause_s > 0

    def again(self, partitions: Iterable[Partition]) -> None:
        """Note that a transaction of these partitions failed: double their pause, halve their size limits."""
        for partition in partitions:
            before = self.of.get(partition, Refused())
            pause_s = _REFUSED.after(before.pause_s)
            self.of[partition] = Refused(pause_s, min(_MAX_HALVINGS, before.halvings + 1))

    def soon(self, partitions: Iterable[Partition]) -> None:
        """Note that a topic refused a message of these partitions: they go alone, but after a short pause."""
        for partition in partitions:
            before = self.of.get(partition, Refused())
            self.of[partition] = replace(before, pause_s=before.pause_s or _REFUSED.first_s)

    def passed(self, partitions: Iterable[Partition], took_s: float) -> None:
        """Note that a transaction of these partitions succeeded; if it was quick, double their limits."""
        for partition in self.of.keys() & partitions:
            halvings = self.of.pop(partition).halvings - (took_s < self._quick_s)
            if halvings > 0:
                self.of[partition] = Refused(0.0, halvings)
