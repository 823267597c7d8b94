"""`Found`: an array for pairs. It grows between the calls of a kernel, so that no kernel allocates memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.errors import UsageError
from twinsieve.stages.kernel import kernel

FIRST_ROOM = 1 << 12


class Found:
    """The pairs found so far. most: greatest number of pairs; with more, `add` raises UsageError"""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pairs = np.empty((FIRST_ROOM, 2), np.int64)
        self._count = 0

    def add(self, write: Callable[[NDArray[np.int64]], int]) -> None:
        """Let `write` add pairs. If its pairs do not all fit, it is called again with a larger array.

        write: takes the array (int64[room, 2]), writes the pairs that fit, returns how many pairs there are
        raises: UsageError if there are more than `most` pairs
        """
        while True:
            added = write(self._pairs[self._count :])
            check_count(self._count + added, self._most)
            if self._count + added <= len(self._pairs):
                self._count += added
                return
            more = np.empty((2 * added, 2), np.int64)
            self._pairs = np.concatenate([self._pairs[: self._count], more])

    @property
    def pairs(self) -> NDArray[np.int64]:
        """int64[m, 2]: all pairs found so far, not copied."""
        return self._pairs[: self._count]


@kernel(callee=True, inlined=True)
def write_pair(pairs: NDArray[np.int64], count: int, first: int | np.int64, second: int | np.int64) -> None:
    """Write a pair to row `count` of `pairs`, if `pairs` has this row."""
    if count < len(pairs):
        pairs[count, 0] = first
        pairs[count, 1] = second


def check_count(pairs: int, most: int) -> None:
    """raises: UsageError if there are more than `most` pairs"""
    if pairs > most:
        raise UsageError(
            f"there are more than {most:,} pairs; use a smaller k, drop equal rows first, or raise max_pairs"
        )
