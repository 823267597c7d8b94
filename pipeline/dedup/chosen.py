"""Chooses the row of each cluster that is kept, as `keep` says: first, last, longest or none.

The verdicts do not depend on it: rows are always compared with the first row of a cluster.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.dedup import Keep
from twinsieve.stages.contract import Kind

_NONE = -1
_BLOCK_ROWS = 1 << 20


class Chosen:
    """The chosen row of each cluster, of all rows that were taken so far.

    Memory: 8 bytes a row, 12 for `longest`.

    first: position of the first row; leaders before it have chosen rows of an earlier run
    left_out: only with `none`: number of leaders that are not kept, because a later row is their duplicate
    """

    def __init__(self, keep: Keep, first: int) -> None:
        self._keep = keep
        self._first = first
        self._chosen = array("q")
        """For each row: if it is unique or has no text, the row that is kept for it; else _NONE."""
        self._lengths = array("i")
        """For each row, only with `longest`: number of characters of the row that is kept for it."""
        self.left_out = 0

    def take(
        self,
        count: int,
        rows: NDArray[np.int64],
        kinds: NDArray[np.uint8],
        leaders: NDArray[np.int64],
        texts: Sequence[str | None],
        without_text: NDArray[np.int64],
    ) -> None:
        """Take the next rows.

        count: their number; rows: int64[m], which of them, from 0, were judged; the next three are of these
        leaders: positions; a value below `first` names no row of this run
        without_text: which rows are kept without a text
        """
        start = len(self._chosen)
        is_unique = kinds == Kind.UNIQUE
        unique = rows[is_unique]
        chosen = np.full(count, _NONE, np.int64)
        chosen[unique] = start + unique
        chosen[without_text] = start + without_text
        self._chosen.frombytes(chosen.tobytes())
        if self._keep == "longest":
            lengths = np.zeros(count, np.int32)
            lengths[unique] = [len(texts[index] or "") for index in np.flatnonzero(is_unique).tolist()]
            self._lengths.frombytes(lengths.tobytes())
        if self._keep == "first":
            return
        for index in np.flatnonzero(~is_unique).tolist():
            leader = int(leaders[index]) - self._first
            if leader < 0:
                continue
            if self._keep == "none":
                self.left_out += self._chosen[leader] != _NONE
                self._chosen[leader] = _NONE
            elif self._is_better(leader, len(texts[index] or "")):
                self._chosen[leader] = start + int(rows[index])

    def _is_better(self, leader: int, length: int) -> bool:
        if self._keep == "last":
            return True
        if length <= self._lengths[leader]:
            return False
        self._lengths[leader] = length
        return True

    def of(self, leader: int) -> int | None:
        """The position of the row that is kept for the cluster of this leader; None if none of it is."""
        if self._keep == "none":
            return None
        row = leader - self._first
        return leader if row < 0 else self._first + self._chosen[row]

    def mask(self) -> NDArray[np.bool_]:
        """bool[rows]: which rows are kept. Frees the memory of the rows; do not call `of` afterwards."""
        chosen, self._chosen, self._lengths = self._chosen, array("q"), array("i")
        mask = np.zeros(len(chosen), np.bool_)
        # Work in blocks: an index array of all rows would need 8 more bytes a row.
        for start in range(0, len(mask), _BLOCK_ROWS):
            rows = np.array(chosen[start : start + _BLOCK_ROWS], np.int64)
            mask[rows[rows != _NONE]] = True
        return mask
