"""Remember the ids of kept texts by position, for every text that can still become a leader.

The ids are in two generations of up to `window` entries. When the newer generation is full, the older one
is dropped and a new one begins. An entry takes 16 bytes plus the id (about 30 bytes for a Python int, 60 for
a str); a text without id takes no memory.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.stages.errors import StateError

Id = str | int


class LeaderIds:
    """The ids of kept texts.

    window: 1 or more; the newest `window` entries are always remembered, and at most twice as many

    >>> ids = LeaderIds(2)
    >>> ids.add(np.array([0, 3, 4]), ["a", None, "c"])
    >>> ids.find(np.array([4, 3, 0])).tolist()
    ['c', None, 'a']
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._older = _IdGeneration()
        self._newer = _IdGeneration()

    def add(self, positions: NDArray[np.int64], ids: Sequence[Id | None]) -> None:
        """Add the ids of kept texts; skip texts without id. Positions ascend, and exceed all earlier ones."""
        for position, leader_id in zip(positions.tolist(), ids, strict=True):
            if leader_id is None:
                continue
            if len(self._newer.ids) >= self._window:
                self._older, self._newer = self._newer, _IdGeneration()
            self._newer.positions.append(position)
            self._newer.ids.append(leader_id)

    def find(self, positions: NDArray[np.int64]) -> NDArray[np.object_]:
        """object[n]: the id of the text at each position; None if it has no id or the id was dropped."""
        ids = np.full(len(positions), None, dtype=object)
        for generation in (self._older, self._newer):
            generation.find(positions, ids)
        return ids

    def __len__(self) -> int:
        return len(self._older.ids) + len(self._newer.ids)

    def to_sections(self) -> dict[str, NDArray[np.int64] | NDArray[np.uint8]]:
        """The entries as named arrays: positions of both generations, sizes, and the ids as one JSON list."""
        ids = to_json([*self._older.ids, *self._newer.ids])
        return {
            "positions": np.array([*self._older.positions, *self._newer.positions], dtype=np.int64),
            "sizes": np.array([len(self._older.ids), len(self._newer.ids)], dtype=np.int64),
            "ids": np.frombuffer(ids, dtype=np.uint8),
        }

    @classmethod
    def from_sections(cls, sections: dict[str, NDArray[np.generic]], window: int) -> LeaderIds:
        """The ids that `to_sections` wrote. raises: StateError if the sections contradict each other"""
        loaded = cls(window)
        positions, sizes = sections["positions"].tolist(), sections["sizes"].tolist()
        # orjson would refuse lone surrogates, and make floats of integers beyond 64 bits.
        ids: list[Id] = json.loads(sections["ids"].tobytes())
        if len(sizes) != 2 or sum(sizes) != len(positions) or len(ids) != len(positions):
            raise StateError("leader ids and their positions differ in number; start with an empty sieve")
        loaded._older = _IdGeneration(positions[: sizes[0]], ids[: sizes[0]])
        loaded._newer = _IdGeneration(positions[sizes[0] :], ids[sizes[0] :])
        return loaded


class _IdGeneration:
    """Positions in ascending order, and the id at each position."""

    def __init__(self, positions: Sequence[int] = (), ids: Sequence[Id] = ()) -> None:
        self.positions = array("q", positions)
        self.ids = list(ids)

    def find(self, positions: NDArray[np.int64], ids: NDArray[np.object_]) -> None:
        """Write into `ids` the id of each position of this generation; leave the other rows unchanged."""
        if not self.ids:
            return
        # Make this view anew in each call: while a view exists, the array cannot grow.
        kept = np.frombuffer(self.positions, dtype=np.int64)
        slots = np.minimum(np.searchsorted(kept, positions), len(kept) - 1)
        for row in np.flatnonzero(kept[slots] == positions).tolist():
            ids[row] = self.ids[slots[row]]
