"""A worker that should read and does not: a client that lost its place in an outage says nothing at all."""

from __future__ import annotations

from collections.abc import Mapping

from twinsieve.pipeline.ports import Partition

_LOOKS = 4
"""So many looks in a row, some seconds apart."""


class Standstill:
    """Finds partitions that have input, wait for no answer, and do not move.

    >>> standstill, at = Standstill(), Partition("posts", 0)
    >>> [standstill.look({at: (5, 9)}, waiting=False) for _ in range(4)][-1]
    [Partition(topic='posts', number=0)]
    """

    def __init__(self) -> None:
        self._seen: dict[Partition, tuple[int, int]] = {}

    def look(self, progress: Mapping[Partition, tuple[int, int]], *, waiting: bool) -> list[Partition]:
        """Partitions that have stood still for so many looks.

        progress: each one's read position and end; waiting: whether answers are awaited
        """
        if waiting:
            self._seen.clear()
            return []
        looks = {at: known for at, known in self._seen.items() if at in progress}
        self._seen = {
            at: (position, looks[at][1] + 1 if at in looks and looks[at][0] == position else 1)
            for at, (position, end) in progress.items()
            if position < end
        }
        return [at for at, (_, count) in self._seen.items() if count >= _LOOKS]
