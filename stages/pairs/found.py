"""`Found`: room for pairs that grows, so that a kernel never allocates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.errors import UsageError

FIRST_ROOM = 1 << 12


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

    @property
    def pairs(self) -> NDArray[np.int64]:
        """int64[m, 2]: a view."""
        return self._pairs[: self._count]


def check_count(pairs: int, most: int) -> None:
    """raises: UsageError if there are more than `most` pairs"""
    if pairs > most:
        raise UsageError(
            f"there are more than {most:,} pairs; use a smaller k, drop equal rows first, or raise max_pairs"
        )
