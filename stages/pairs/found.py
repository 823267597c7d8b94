"""`Found`: room for pairs that grows, so that a kernel never allocates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.errors import UsageError
from twinsieve.stages.kernel import kernel

FIRST_ROOM = 1 << 12
_ROWS = 1024


class Found:
    """The pairs found so far. most: more than this many are refused"""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pairs = np.empty((FIRST_ROOM, 2), np.int64)
        self._count = 0

    def add(self, write: Callable[[NDArray[np.int64]], int]) -> None:
        """Let `write` add pairs. Given int64[room, 2], it writes what fits and returns how many there are.

        It is called again with more room if not all fitted. raises: UsageError
        """
        while True:
            added = write(self._pairs[self._count :])
            check_count(self._count + added, self._most)
            if self._count + added <= len(self._pairs):
                self._count += added
                return
            more = np.empty((2 * added, 2), np.int64)
            self._pairs = np.concatenate([self._pairs[: self._count], more])

    def add_by_rows(self, rows: int, write: Callable[[int, int, NDArray[np.int64]], int]) -> None:
        """`add` for all rows, 1,024 at a time, so that little is written again if the room is too small.

        write: is given the first row and the row after the last one, and the room
        """
        for low in range(0, rows, _ROWS):
            self.add(partial(write, low, min(low + _ROWS, rows)))

    @property
    def pairs(self) -> NDArray[np.int64]:
        """int64[m, 2]: a view."""
        return self._pairs[: self._count]


@kernel(callee=True, inlined=True)
def write_pair(pairs: NDArray[np.int64], count: int, first: int | np.int64, second: int | np.int64) -> None:
    """Write a pair in place `count`, if there is room for it."""
    if count < len(pairs):
        pairs[count, 0] = first
        pairs[count, 1] = second


def check_count(pairs: int, most: int) -> None:
    """raises: UsageError if there are more than `most` pairs"""
    if pairs > most:
        raise UsageError(
            f"there are more than {most:,} pairs; use a smaller k, drop equal rows first, or raise max_pairs"
        )
