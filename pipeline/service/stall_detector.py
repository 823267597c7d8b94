"""`StallDetector`: finds a client that has stopped reading."""

from __future__ import annotations

from collections.abc import Mapping

from twinsieve.pipeline.broker.records import Partition

_CHECKS = 4
"""A partition has stalled if this many checks in a row, seconds apart, find the same read position."""


class StallDetector:
    """Finds partitions that have input, but whose read position does not move although no answer is awaited.

    >>> detector, at = StallDetector(), Partition("posts", 0)
    >>> [detector.stalled({at: (5, 9)}, waiting=False) for _ in range(4)][-1]
    [Partition(topic='posts', number=0)]
    """

    def __init__(self) -> None:
        self._seen: dict[Partition, tuple[int, int]] = {}

    def stalled(self, progress: Mapping[Partition, tuple[int, int]], *, waiting: bool) -> list[Partition]:
        """Partitions whose position did not move in the last _CHECKS checks, this one included.

        progress: read position and end offset of each partition
        waiting: whether the role waits, as a worker for answers of the index, so that nothing need move
        """
        before = self._seen
        self._seen = {
            partition: (
                position,
                before[partition][1] + 1 if partition in before and before[partition][0] == position else 1,
            )
            for partition, (position, end) in progress.items()
            if position < end and not waiting
        }
        return [partition for partition, (_, count) in self._seen.items() if count >= _CHECKS]
