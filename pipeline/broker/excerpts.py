"""Reads parts of partitions outside any group, counts what it reads, and stops at a limit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import AbortableError, BrokerError, Header, Partition, UnreadableError

_POLL_S = 0.2
_SILENT_S = 15.0
"""A broker that delivers nothing for this time, although there is something, counts as away."""
_FEW, _MANY = 16, 1_000
"""Records of the first poll and of the largest one: most searches end after a few records."""


class Row(NamedTuple):
    """One record. time_ms: its timestamp, or NO_TIMESTAMP"""

    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]


@dataclass(slots=True)
class Reach:
    """What was read of a partition: number of records, the lowest and the highest offset."""

    records: int = 0
    low: int = -1
    high: int = -1

    def add(self, offset: int) -> None:
        """Count one record."""
        self.low = offset if self.records == 0 else min(self.low, offset)
        self.high = max(self.high, offset)
        self.records += 1

    def join(self, other: Reach) -> None:
        """Count what was read by another reader, too."""
        if other.records:
            self.low = min(self.low, other.low) if self.records else other.low
            self.high = max(self.high, other.high)
            self.records += other.records


class TooFarError(Exception):
    """The limit of records is reached."""


class Excerpts:
    """Reads committed records of any partitions. Several iterators may be used in turn.

    most: limit of records for everything that is read
    reached: what was read so far, by partition
    tell: called with the number of records now and then
    skips: whether to pass over batches that cannot be read; else they are an error
    skipped: number of offsets of such batches
    """

    def __init__(
        self,
        broker: Broker,
        clock: Clock,
        most: int,
        tell: Callable[[int], None] = lambda _: None,
        *,
        skips: bool = False,
    ) -> None:
        self._reader = broker.reader()
        self._clock = clock
        self._most = most
        self._tell = tell
        self._skips = skips
        self.skipped = 0
        self._holder: object = None
        self._bounds: dict[Partition, tuple[int, int]] = {}
        self.reached: dict[Partition, Reach] = {}
        self.records = 0
        """Number of records that were read."""

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """First offset and last stable offset of the partition when it was first asked for.

        raises: BrokerError for a missing topic
        """
        self.look([partition])
        return self._bounds[partition]

    def look(self, partitions: Collection[Partition]) -> None:
        """Find out the bounds of these partitions together."""
        new = [partition for partition in partitions if partition not in self._bounds]
        if new:
            begin, end = self._reader.beginning_offsets(new), self._reader.end_offsets(new)
            self._bounds.update({at: (begin[at], max(begin[at], end[at])) for at in new})

    def rows(self, partition: Partition, first: int, end: int) -> Iterator[Row]:
        """The records in [first, end) that the partition still has; not beyond its bounds.

        raises: TooFarError; BrokerError, also if nothing is delivered for `_SILENT_S`
        """
        begin, stable_end = self.bounds(partition)
        position, end = max(first, begin), min(end, stable_end)
        mine, share = object(), _FEW
        moved_s = self._clock.monotonic_s()
        while position < end:
            if self._holder is not mine:
                self._reader.assign([partition])
                self._reader.seek(partition, position)
                self._holder = mine
            try:
                polled = self._reader.poll(_POLL_S, share)
                after = self._reader.position(partition)
            except AbortableError:
                # Retention may have taken the next record since the bounds were read.
                left = self._reader.beginning_offsets([partition])[partition]
                if left <= position:
                    raise
                position, self._holder = left, None
                continue
            except UnreadableError as error:
                # A damaged header may name an offset beyond the end.
                if not self._skips or error.after is None or not position < error.after <= stable_end:
                    raise
                self.skipped += min(end, error.after) - max(position, error.offset)
                position, self._holder = error.after, None
                continue
            if polled or after > position:
                moved_s, share = self._clock.monotonic_s(), min(_MANY, 2 * share)
            elif self._clock.monotonic_s() - moved_s >= _SILENT_S:
                raise BrokerError(
                    f"{partition}: the broker delivers nothing from offset {position} on; try again",
                    retryable=True,
                )
            for records in polled:
                if records.partition != partition:
                    continue
                columns = (
                    records.offsets, records.timestamps_ms, records.keys, records.values, records.headers,
                )  # fmt: skip
                for row in map(Row._make, zip(*columns, strict=True)):
                    if row.offset >= end:
                        return
                    position = row.offset + 1
                    self._count(partition, row.offset)
                    yield row
            position = max(position, after)

    def first(self, partition: Partition, first: int, end: int) -> Row | None:
        """The first record in [first, end); None if there is none. raises: as `rows`"""
        return next(self.rows(partition, first, end), None)

    def at(self, partition: Partition, offset: int) -> Row | None:
        """The record at this very offset; None if retention or compaction took it, or if it is none."""
        row = self.first(partition, offset, offset + 1)
        return row if row is not None and row.offset == offset else None

    def _count(self, partition: Partition, offset: int) -> None:
        if self.records >= self._most:
            raise TooFarError
        self.reached.setdefault(partition, Reach()).add(offset)
        self.records += 1
        if self.records % _MANY == 0:
            self._tell(self.records)

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()
