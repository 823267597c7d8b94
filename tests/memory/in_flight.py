"""Messages between a producer and the log: handed over, not written yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.memory.clocks import Clocks
from tests.memory.log import Outcome, Transaction
from twinsieve.pipeline.broker.records import Messages, Partition


class Flying(NamedTuple):
    """One message; the broker writes it at `due_s`, or when its partition has a leader again.

    sent_s: when its client got it, by the clock of its process
    """

    due_s: float
    partition: Partition
    message: Messages
    transaction: Transaction | None
    sent_s: float


class InFlight:
    """The messages of one producer, oldest first.

    since_s: when the oldest of them was handed over, or the last one before it was written
    """

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self.since_s = 0.0
        self._waiting: deque[Flying] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(
        self,
        partition: Partition,
        messages: Messages,
        now_s: float,
        latency_s: Callable[[], float],
        transaction: Transaction | None = None,
    ) -> None:
        """Hand messages over; none is written before those that came earlier."""
        if not self._waiting:
            self.since_s = now_s
        columns = zip(messages.keys, messages.values, messages.headers, messages.timestamps_ms, strict=True)
        for key, value, headers, stamp in columns:
            one = Messages()
            one.add(key, value, headers, stamp)
            due_s = max(now_s + latency_s(), self._waiting[-1].due_s if self._waiting else now_s)
            sent_s = self._clocks.local.monotonic_s()
            self._waiting.append(Flying(due_s, partition, one, transaction, sent_s))

    def take(self, now_s: float, writable: Callable[[Partition], bool]) -> Iterator[Flying]:
        """The messages to be written now, which then wait no longer. Order holds within a partition; what
        belongs to a transaction that has ended is dropped."""
        held: deque[Flying] = deque()
        stuck: set[Partition] = set()
        while self._waiting:
            one = self._waiting.popleft()
            if one.transaction is not None and one.transaction.outcome is not Outcome.OPEN:
                continue
            if one.due_s > now_s or one.partition in stuck or not writable(one.partition):
                stuck.add(one.partition)
                held.append(one)
                continue
            self.since_s = now_s
            yield one
        self._waiting = held

    def acknowledge(self, one: Flying, stamp_ms: int | None) -> None:
        """One message was written; stamp_ms: the broker's, if the topic has it."""
        if stamp_ms is not None:
            self._clocks.broker.acknowledged(stamp_ms, one.sent_s)

    def cut(self, kept: int) -> None:
        """Give up all but the first `kept` messages."""
        while len(self._waiting) > kept:
            self._waiting.pop()
