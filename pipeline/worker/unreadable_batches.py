"""Batches of the input that a worker cannot read, and when it tries again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import Partition, UnreadableError

_TRIES = Pauses(first_s=5.0, longest_s=60.0)
"""Each try may unpack `kafka.max_unpacked_bytes`, and the other partitions wait for it."""


@dataclass(frozen=True, slots=True)
class _Held:
    """offset: the first one that cannot be read; due_s: when to read again; None while that is being tried"""

    offset: int
    why: str
    pause_s: float
    due_s: float | None


class UnreadableBatches:
    """The batch that holds each partition, at most one by partition. Pauses between two tries grow up to a
    minute.

    >>> class Stopped:
    ...     def monotonic_s(self): return 5.0
    >>> batches, at = UnreadableBatches(Stopped()), Partition("posts", 0)
    >>> batches.hold(UnreadableError(at, 7, "wrong checksum", 9))
    True
    >>> batches.holds(at), list(batches.due())
    (True, [])
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of: dict[Partition, _Held] = {}
        self._doubted: dict[Partition, tuple[int, int]] = {}

    def __iter__(self) -> Iterator[tuple[Partition, str]]:
        """Each partition with such a batch, and what to do about it, as text for the operator."""
        return ((partition, held.why) for partition, held in self._of.items())

    def hold(self, error: UnreadableError) -> bool:
        """Read this batch again after a pause; returns whether the batch was not known before."""
        before = self._of.get(error.partition)
        is_new = before is None or before.offset != error.offset
        pause_s = _TRIES.after(0.0 if before is None else before.pause_s)
        why = f"{error}, or lose the messages of this batch: input.on_unreadable_batch: skip"
        if error.after is not None:
            why += f", or twinsieve reset --to '{error.partition}={error.after}'"
        due_s = self._clock.monotonic_s() + pause_s
        self._of[error.partition] = _Held(error.offset, why, pause_s, due_s)
        return is_new

    def doubts(self, error: UnreadableError, position: int) -> bool:
        """Whether messages may come before this batch, because it lies beyond the read position: a client
        may have met it before it was sought back. If it reports the batch again from the same position, only
        a gap is between them."""
        report = position, error.offset
        is_new = position < error.offset and self._doubted.pop(error.partition, None) != report
        if is_new:
            self._doubted[error.partition] = report
        return is_new

    def holds(self, partition: Partition) -> bool:
        """Whether the partition must not be read now."""
        return partition in self._of and self._of[partition].due_s is not None

    def due(self) -> Iterator[tuple[Partition, int]]:
        """Partitions to read again now, each with the offset to read from."""
        now_s = self._clock.monotonic_s()
        for partition, held in self._of.items():
            if held.due_s is not None and held.due_s <= now_s:
                yield partition, held.offset

    def trying(self, partition: Partition) -> None:
        """Note that the partition is being read again."""
        self._doubted.pop(partition, None)
        if partition in self._of:
            self._of[partition] = replace(self._of[partition], due_s=None)

    def passed(self, partition: Partition, position: int) -> bool:
        """Note the read position of a partition; returns whether that ends a wait."""
        held = self._of.get(partition)
        if held is None or position <= held.offset:
            return False
        del self._of[partition]
        return True

    def keep(self, partitions: Collection[Partition]) -> None:
        """Forget all partitions but these, because the others belong to another worker now."""
        self._of = {partition: held for partition, held in self._of.items() if partition in partitions}
