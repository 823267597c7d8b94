"""Finds out whether a snapshot belongs to the history that its log has now.

A cluster that is restored from a backup has the topic ids of the log that a newer snapshot was made of, but
continues with other blocks and decisions. So does a broker that lost its last seconds. A snapshot of what is
gone would make the index drop messages for leaders that were never emitted, or take new messages for judged
ones. What tells is the content: the links of the decisions around the end of the snapshot
(`pipeline/wire/chain.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from twinsieve.pipeline.broker.ports import Clock, Reader
from twinsieve.pipeline.broker.records import AbortableError, Committed, Partition
from twinsieve.pipeline.index.snapshot_store import Stamp
from twinsieve.pipeline.wire.chain import UNKNOWN, link_after, link_before
from twinsieve.pipeline.wire.ruling import block_of

_AGAIN_S = 3.0
"""Time to look again before a snapshot counts as ahead of its log: what its index has committed just now may
not be readable yet."""

_PAUSE_S = 0.1
_SILENCE_S = 30.0
_MOST_RECORDS = 64


class Unconfirmed(str):
    """An objection that contradicts nothing: retention deleted what would tell."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class History:
    """The history of a log, as its decisions tell it.

    reader: reads the decisions; its assignment changes
    committed: returns what the index group has committed for the log
    """

    reader: Reader
    clock: Clock
    log: Partition
    decisions: Partition
    committed: Callable[[], Committed | None]

    def objection(self, stamp: Stamp) -> str:
        """Why the state of a snapshot does not belong to this log, or may not; empty if it does.

        A snapshot of an older format says too little, and is believed unless the topics are shorter.
        raises: AbortableError if no broker answers
        """
        deadline_s = self.clock.monotonic_s() + _AGAIN_S
        while True:
            objection, is_final = self._look(stamp)
            if not objection or is_final or self.clock.monotonic_s() >= deadline_s:
                return objection
            self.clock.sleep(_PAUSE_S)

    def _look(self, stamp: Stamp) -> tuple[str, bool]:
        """The objection, and whether later records cannot change it."""
        both = [self.log, self.decisions]
        ends, beginnings = self.reader.end_offsets(both), self.reader.beginning_offsets(both)
        for partition, needed in ((self.log, stamp.next_offset), (self.decisions, stamp.decisions_from)):
            if ends[partition] < needed:
                return f"it needs {partition} up to {needed}, which ends at {ends[partition]}", False
        if stamp.link == UNKNOWN:
            return "", True
        end, first = ends[self.decisions], max(beginnings[self.decisions], stamp.decisions_from)
        link: bytes | None = None
        for value, before in self._records(first, end):
            block = block_of(value)
            if block >= stamp.next_offset:
                if before is None or before == stamp.link:
                    return "", True
                if link is None and first > stamp.decisions_from:
                    return Unconfirmed(f"retention deleted the decisions before block {block}"), True
                return f"the decision on block {block} follows another one", True
            link = link_after(before, value)
        if link is not None:
            other = f"the last decision before block {stamp.next_offset} is another one"
            return ("" if link in (stamp.link, UNKNOWN) else other), False
        if first > stamp.decisions_from:
            committed = self.committed()
            if committed is not None and committed.offset == stamp.next_offset:
                return "", True
            return Unconfirmed(f"retention deleted the decision before block {stamp.next_offset}"), True
        return f"there is no decision before block {stamp.next_offset}", False

    def _records(self, first: int, end: int) -> Iterator[tuple[bytes, bytes | None]]:
        """The decisions in [first, end), each with the link before it."""
        if first >= end:
            return
        self.reader.assign([self.decisions])
        self.reader.seek(self.decisions, first)
        moved_s, at = self.clock.monotonic_s(), first
        while at < end:
            for records in self.reader.poll(_PAUSE_S, _MOST_RECORDS):
                for value, headers in zip(records.values, records.headers, strict=True):
                    yield value or b"", link_before(headers)
            before, at = at, self.reader.position(self.decisions)
            if at > before:
                moved_s = self.clock.monotonic_s()
            elif self.clock.monotonic_s() - moved_s > _SILENCE_S:
                raise AbortableError(f"{self.decisions}: no answer for {_SILENCE_S:.0f} s")
