"""Which input partitions of a worker emit nothing although they may have messages, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import NamedTuple

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import Partition

_MOST_LISTED = 8


class WaitReason(StrEnum):
    """Why a partition emits nothing. The words are label values of a metric."""

    LEADER = "no_leader"
    """a partition that it needs has no leader"""
    BEGIN = "cannot_begin"
    """its session cannot begin: the broker cannot tell its offsets, or a transaction is open"""
    INDEX = "no_answer"
    """the index has not answered its last session in time"""
    FAILED = "failed_transaction"
    """its last transaction failed; it is tried again after a pause"""
    REFUSED = "refused_message"
    """an output refuses one of its messages, and `output.on_refused` is hold"""
    UNREADABLE = "unreadable_batch"
    """a batch of it cannot be read, and `input.on_unreadable_batch` is hold"""
    SCHEMA = "schema_registry"
    """a schema registry has not said yet what the schema of its next message is"""


_ENDS_WITH_OUTPUT = frozenset(WaitReason) - {WaitReason.UNREADABLE, WaitReason.SCHEMA}
"""Reasons that end when the partition emits something. It may emit messages before one that cannot be read
yet."""


class Wait(NamedTuple):
    """Why one partition waits.

    why: text for the operator, safe to print; since_s: monotonic time at which it began to wait
    """

    reason: WaitReason
    why: str
    since_s: float


class Waits:
    """The waiting partitions of one worker. A partition waits from `wait` until `ended`; another reason
    meanwhile does not change since when.

    >>> class Stopped:
    ...     def monotonic_s(self): return 5.0
    >>> waits, at = Waits(Stopped()), Partition("posts", 0)
    >>> waits.wait([at], WaitReason.LEADER, "posts[0] has no leader")
    >>> waits.of[at]
    Wait(reason=<WaitReason.LEADER: 'no_leader'>, why='posts[0] has no leader', since_s=5.0)
    >>> waits.lasting(0.0)
    ['posts[0]: no leader: posts[0] has no leader']
    >>> waits.because(WaitReason.LEADER), waits.because(WaitReason.INDEX)
    ({Partition(topic='posts', number=0)}, set())
    >>> waits.ended([at], WaitReason.INDEX)
    >>> waits.ended([at])
    >>> waits.of
    {}
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of: dict[Partition, Wait] = {}

    @property
    def of(self) -> Mapping[Partition, Wait]:
        """The partitions that wait."""
        return self._of

    def because(self, reason: WaitReason) -> set[Partition]:
        """The partitions that wait for this reason."""
        return {partition for partition, wait in self._of.items() if wait.reason is reason}

    def lasting(self, seconds: float) -> list[str]:
        """A line for each cause that keeps partitions waiting for at least this long; safe to print. May be
        called by another thread."""
        now_s = self._clock.monotonic_s()
        causes: dict[tuple[WaitReason, str], list[Partition]] = {}
        for partition, wait in dict(self._of).items():
            if now_s - wait.since_s >= seconds:
                causes.setdefault((wait.reason, wait.why), []).append(partition)
        return [
            f"{_listed(partitions)}: {reason.replace('_', ' ')}: {printable(why)}"
            for (reason, why), partitions in causes.items()
        ]

    def wait(self, partitions: Collection[Partition], reason: WaitReason, why: str) -> None:
        """Note that these partitions wait, or still wait, for this reason."""
        for partition in partitions:
            before = self._of.get(partition)
            since_s = before.since_s if before is not None else self._clock.monotonic_s()
            self._of[partition] = Wait(reason, why, since_s)

    def ended(self, partitions: Collection[Partition], *reasons: WaitReason) -> None:
        """Note that these partitions go on. reasons: only those that wait for one of these; if none is given,
        for any but those that keep it from being read"""
        for partition in partitions:
            wait = self._of.get(partition)
            if wait is not None and wait.reason in (reasons or _ENDS_WITH_OUTPUT):
                del self._of[partition]

    def keep(self, partitions: Collection[Partition]) -> None:
        """Forget all partitions but these, because the others belong to another worker now."""
        self._of = {partition: wait for partition, wait in self._of.items() if partition in partitions}


def _listed(partitions: list[Partition]) -> str:
    shown = ", ".join(map(str, sorted(partitions)[:_MOST_LISTED]))
    more = len(partitions) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown
