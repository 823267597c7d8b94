"""`TrieHead`: a small hash table with the newest entries of the trie method, before they are sealed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import GOLDEN
from twinsieve.stages.kernel import kernel

_EMPTY = -1
_HALF = np.uint64(32)


class Entries(NamedTuple):
    """n kept messages, in the order in which they were kept.

    digests: uint64[n, 2]; positions: int64[n], position of the message, the leader of later copies
    kept: int64[n], kept indices; times_ms: int64[n], stream times
    """

    digests: NDArray[np.uint64]
    positions: NDArray[np.int64]
    kept: NDArray[np.int64]
    times_ms: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64] | slice) -> Entries:
        """The entries of these rows."""
        return Entries(self.digests[rows], self.positions[rows], self.kept[rows], self.times_ms[rows])


class TrieHead:
    """Up to `size` entries; a look-up finds the newest entry of a digest.

    entries: columns of `size` rows, of which the first `count` are in use; memory is allocated once
    """

    def __init__(self, size: int) -> None:
        self.entries = Entries(
            digests=np.zeros((size, 2), dtype=np.uint64),
            positions=np.zeros(size, dtype=np.int64),
            kept=np.zeros(size, dtype=np.int64),
            times_ms=np.zeros(size, dtype=np.int64),
        )
        self.count = 0
        self._slots = np.full(1 << (size + size // 2).bit_length(), _EMPTY, dtype=np.int32)

    @staticmethod
    def bytes_for(size: int) -> int:
        """Bytes of a head of this size."""
        return size * 40 + 4 * (1 << (size + size // 2).bit_length())

    @property
    def room(self) -> int:
        """Number of entries that can still be added."""
        return len(self.entries.kept) - self.count

    def add(self, entries: Entries) -> None:
        """Add entries. There must be room for all of them."""
        start = self.count
        self.count += len(entries.kept)
        for column, added in zip(self.entries, entries, strict=True):
            column[start : self.count] = added
        _map_rows(self._slots, self.entries.digests, start, self.count)

    def find(self, digests: NDArray[np.uint64]) -> NDArray[np.int64]:
        """int64[n]: row of the newest entry of each digest, or -1. digests: uint64[n, 2]"""
        rows = np.empty(len(digests), dtype=np.int64)
        _find_rows(self._slots, self.entries.digests, digests, rows)
        return rows

    def clear(self) -> None:
        """Empty the head."""
        self.count = 0
        self._slots.fill(_EMPTY)


@kernel(callee=True)
def _cell_of(slots: NDArray[np.int32], digests: NDArray[np.uint64], d0: np.uint64, d1: np.uint64) -> np.int64:
    mask = np.int64(len(slots) - 1)
    mixed = d0 ^ (d1 >> _HALF) ^ (d1 << _HALF)
    cell = np.int64(((mixed ^ (mixed >> _HALF)) * GOLDEN) >> _HALF) & mask
    while True:
        row = np.int64(slots[cell])
        if row < 0 or (digests[row, 0] == d0 and digests[row, 1] == d1):
            return cell
        cell = (cell + 1) & mask


@kernel
def _map_rows(slots: NDArray[np.int32], digests: NDArray[np.uint64], start: int, end: int) -> None:
    for row in range(start, end):
        slots[_cell_of(slots, digests, digests[row, 0], digests[row, 1])] = row


@kernel
def _find_rows(
    slots: NDArray[np.int32],
    digests: NDArray[np.uint64],
    wanted: NDArray[np.uint64],
    rows: NDArray[np.int64],
) -> None:
    for i in range(len(wanted)):
        rows[i] = slots[_cell_of(slots, digests, wanted[i, 0], wanted[i, 1])]
