"""Remember the ids of kept texts by position, for every text that can still become a leader.

The ids are in two generations of up to `window` entries. When the newer generation is full, the older one
is dropped and a new one begins. An entry takes 16 bytes plus the id (about 30 bytes for a Python int, 60 for
a str); a text without id takes no memory. They are saved in blocks of entries, and a full block never changes
again.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.stages.errors import StateError
from twinsieve.stages.exact.sections import Sections

Id = str | int

_BLOCK = 1 << 16
"""Entries of a saved block, or a 16th of the window if that is more."""


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
        self._block = max(_BLOCK, window // 16)
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

    def blocks(self) -> list[dict[str, Callable[[], Sections]]]:
        """For each generation the names of its blocks in order, with functions that return their entries.

        A block with the same name has the same content in every later call.
        """
        return [generation.blocks(self._block) for generation in (self._older, self._newer)]

    @classmethod
    def from_blocks(cls, generations: Sequence[Sequence[Sections]], window: int) -> LeaderIds:
        """The ids that `blocks` returned. raises: StateError if the entries contradict each other"""
        loaded = cls(window)
        loaded._older, loaded._newer = map(_IdGeneration.of, generations)
        return loaded


class _IdGeneration:
    """Positions in ascending order, and the id at each position."""

    def __init__(self) -> None:
        self.positions = array("q")
        self.ids: list[Id] = []

    @classmethod
    def of(cls, blocks: Sequence[Sections]) -> _IdGeneration:
        """The generation with the entries of these blocks. raises: StateError"""
        generation = cls()
        for block in blocks:
            # orjson would refuse lone surrogates, and make floats of integers beyond 64 bits.
            ids = json.loads(block["ids"].tobytes())
            if len(ids) != len(block["positions"]):
                raise StateError("leader ids and their positions differ in number; start with an empty sieve")
            generation.positions.extend(block["positions"].tolist())
            generation.ids += ids
        return generation

    def blocks(self, size: int) -> dict[str, Callable[[], Sections]]:
        bounds = [*range(0, len(self.ids), size), len(self.ids)]
        return {
            f"ids-{self.positions[low]}-{high - low}": partial(self._entries, low, high)
            for low, high in pairwise(bounds)
        }

    def _entries(self, low: int, high: int) -> Sections:
        return {
            "positions": np.array(self.positions[low:high], np.int64),
            "ids": np.frombuffer(to_json(self.ids[low:high]), np.uint8),
        }

    def find(self, positions: NDArray[np.int64], ids: NDArray[np.object_]) -> None:
        """Write into `ids` the id of each position of this generation; leave the other rows unchanged."""
        if not self.ids:
            return
        # Make this view anew in each call: while a view exists, the array cannot grow.
        kept = np.frombuffer(self.positions, dtype=np.int64)
        slots = np.minimum(np.searchsorted(kept, positions), len(kept) - 1)
        for row in np.flatnonzero(kept[slots] == positions).tolist():
            ids[row] = self.ids[slots[row]]
