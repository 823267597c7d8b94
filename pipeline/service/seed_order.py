"""Read partitions side by side in time: none is ahead of the slowest by more than a minute of message time.

Stream time is the latest message time so far. The age of an entry in a window counts from the stream time at
which it was added. If the partitions of a topic were read one after the other, the first one would move
stream time to its end. All entries of the others would then look new, and the window would hold the wrong
messages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from twinsieve.pipeline.broker.ports import Broker, Clock, GroupConsumer
from twinsieve.pipeline.broker.records import NO_EPOCH, AbortableError, Partition, PollResult

POLL_MESSAGES = 2_000
"""The most messages of one poll, so that a partition is not far ahead after it."""
_AHEAD_MS = 60_000
_PATIENCE_S = 5.0
_NO_LIMIT = 1 << 62


def ordered_broker(inner: Broker, clock: Clock, ends: Mapping[Partition, int]) -> Broker:
    """The broker `inner` with other group consumers, which keep their partitions together in message time.

    ends: offset of each partition up to which this applies
    """
    return cast(Broker, _OrderedBroker(inner, clock, ends))


@dataclass(frozen=True)
class _OrderedBroker:
    inner: Broker
    local: Clock
    """The clock. Its name cannot be `clock`, because callers get that attribute of the inner broker."""
    ends: Mapping[Partition, int]

    def group_consumer(self, group: str, topics: Sequence[str], member: str | None = None) -> GroupConsumer:
        inner = self.inner.group_consumer(group, topics, member)
        return cast(GroupConsumer, _OrderedConsumer(inner, self.local, self.ends))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class _OrderedConsumer:
    """A group consumer that pauses the partitions that are ahead of the slowest one.

    A partition that has reached its end is not the slowest one, nor is a partition without input for
    _PATIENCE_S: order is worth a short wait, but not a stop.
    """

    def __init__(self, inner: GroupConsumer, clock: Clock, ends: Mapping[Partition, int]) -> None:
        self._inner = inner
        self._clock = clock
        self._ends = ends
        self._epoch = -1
        self._times_ms: dict[Partition, int] = {}
        self._ahead: set[Partition] = set()
        self._paused: set[Partition] = set()
        self._received_s: dict[Partition, float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def poll(self, timeout_s: float, max_records: int) -> PollResult:
        polled = self._inner.poll(timeout_s, max_records)
        if polled.epoch != self._epoch:
            self._epoch = polled.epoch
            self._times_ms.clear()
            self._ahead.clear()
            self._paused.clear()
            self._received_s = dict.fromkeys(polled.assignment, self._clock.monotonic_s())
        for records in polled.records:
            self._times_ms[records.partition] = max(records.timestamps_ms)
            self._received_s[records.partition] = self._clock.monotonic_s()
        self._pause_ahead(polled.assignment)
        return polled

    def _pause_ahead(self, assignment: Collection[Partition]) -> None:
        since_s = self._clock.monotonic_s() - _PATIENCE_S
        waited_for = [key for key in assignment if self._received_s[key] >= since_s and not self._at_end(key)]
        slowest_ms = min((self._times_ms.get(key, 0) for key in waited_for), default=_NO_LIMIT)
        ahead = {key for key, time_ms in self._times_ms.items() if time_ms > slowest_ms + _AHEAD_MS}
        self._inner.pause(ahead - self._ahead)
        self._inner.resume(self._ahead - ahead - self._paused)
        self._ahead = ahead

    def _at_end(self, partition: Partition) -> bool:
        try:
            return self._inner.position(partition) >= self._ends.get(partition, 0)
        except AbortableError:
            return False

    def seek(self, partition: Partition, offset: int, epoch: int = NO_EPOCH) -> None:
        self._times_ms.pop(partition, None)
        self._inner.seek(partition, offset, epoch)

    def pause(self, partitions: Collection[Partition]) -> None:
        self._paused.update(partitions)
        self._inner.pause(partitions)

    def resume(self, partitions: Collection[Partition]) -> None:
        """Resume these partitions, except those that are ahead."""
        self._paused.difference_update(partitions)
        self._inner.resume(set(partitions) - self._ahead)
