"""Count the drops of each leader in little memory."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

_MOST_NEW = 1 << 20


class LeaderCounts:
    """The number of drops of each leader, by position.

    Memory: 16 bytes a leader, 24 while leaders are added, and 50 MB at most for drops not yet counted.
    """

    def __init__(self) -> None:
        self._positions: NDArray[np.int64] = np.empty(0, np.int64)
        self._counts: NDArray[np.int64] = np.empty(0, np.int64)
        self._new = array("q")

    def add(self, position: int) -> None:
        """Count a drop of the leader at this position."""
        self._new.append(position)
        if len(self._new) >= _MOST_NEW:
            self._settle()

    def __len__(self) -> int:
        self._settle()
        return len(self._positions)

    def most(self, wanted: int) -> list[tuple[int, int]]:
        """Position and drops of the leaders with the most drops, the biggest first.

        wanted: how many at most; of leaders with equally many drops the older come first
        """
        self._settle()
        counts, wanted = self._counts, min(wanted, len(self._counts))
        if not wanted:
            return []
        least = np.partition(counts, len(counts) - wanted)[len(counts) - wanted]
        above, equal = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
        chosen = np.concatenate((above, equal[: wanted - len(above)]))
        chosen = chosen[np.lexsort((self._positions[chosen], -counts[chosen]))]
        return list(zip(self._positions[chosen].tolist(), counts[chosen].tolist(), strict=True))

    def sizes(self) -> dict[int, int]:
        """How many leaders have how many drops, by number of drops, ascending."""
        self._settle()
        drops, leaders = np.unique(self._counts, return_counts=True)
        return dict(zip(drops.tolist(), leaders.tolist(), strict=True))

    def _settle(self) -> None:
        """Merge the new drops into the counts."""
        if not self._new:
            return
        positions, counts = np.unique(np.frombuffer(self._new, np.int64), return_counts=True)
        self._new = array("q")
        places = np.searchsorted(self._positions, positions)
        inside = np.minimum(places, max(len(self._positions) - 1, 0))
        known = np.zeros(len(positions), bool)
        if len(self._positions):
            known = self._positions[inside] == positions
        self._counts[places[known]] += counts[known]
        self._positions = np.insert(self._positions, places[~known], positions[~known])
        self._counts = np.insert(self._counts, places[~known], counts[~known])
