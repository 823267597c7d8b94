"""Arenas: arrays in which polled records lie, used again when nothing refers to their records any more."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_WORTH_KEEPING = 64 << 10
"""The system gives smaller pieces of memory faster than a pool."""
_STEPS = 8
"""Sizes of kept arenas between one power of two and the next: more fit less often, fewer waste more."""


class Arenas:
    """Makes arenas, and keeps some of those that came back.

    The first write to fresh memory costs a page fault for every 4 KiB: up to 1.1 µs a message, where an arena
    that is used again takes .1 µs.

    An arena comes back when the last array, view or memoryview of it is gone, by Python's count of
    references. So nobody can read an arena that holds other records by now.

    keep_bytes: the most bytes of arenas that came back and are kept
    alive, alive_bytes: arenas that are in use
    """

    def __init__(self, keep_bytes: int) -> None:
        self._keep_bytes = keep_bytes
        self._free: list[NDArray[np.uint8]] = []
        self._free_bytes = 0
        self.alive = self.alive_bytes = 0
        # While the lock is held, the garbage collector may drop an arena, which calls `_back`.
        self._lock = threading.RLock()

    def take(self, size: int) -> NDArray[np.uint8]:
        """An arena of at least this size, uint8[], with any content."""
        capacity = size if size < _WORTH_KEEPING else _rounded(size)
        with self._lock:
            memory = self._fitting(capacity)
            if memory is None:
                memory = np.empty(capacity, np.uint8)
            self.alive += 1
            self.alive_bytes += len(memory)
        # An object of its own for each use: its end is the end of that use.
        arena = np.frombuffer(memory.data, np.uint8)
        weakref.finalize(arena, self._back, memory).atexit = False
        return arena

    def _fitting(self, size: int) -> NDArray[np.uint8] | None:
        """The smallest kept arena with this size, if it is not twice as large."""
        fitting = [place for place, memory in enumerate(self._free) if size <= len(memory) <= 2 * size]
        if not fitting:
            return None
        memory = self._free.pop(min(fitting, key=lambda place: len(self._free[place])))
        self._free_bytes -= len(memory)
        return memory

    def _back(self, memory: NDArray[np.uint8]) -> None:
        with self._lock:
            self.alive -= 1
            self.alive_bytes -= len(memory)
            returned(memory)
            if len(memory) >= _WORTH_KEEPING and self._free_bytes + len(memory) <= self._keep_bytes:
                self._free.append(memory)
                self._free_bytes += len(memory)


def _nothing(_memory: NDArray[np.uint8]) -> None:
    """What comes back keeps its content."""


returned: Callable[[NDArray[np.uint8]], None] = _nothing
"""Called with each arena that came back. Tests overwrite it there, to find who still reads it."""


def _rounded(size: int) -> int:
    """The size, up to the next of `_STEPS` sizes between powers of two.

    >>> _rounded(1_000_000), _rounded(1 << 20)
    (1048576, 1048576)
    """
    step = 1 << max(0, (size - 1).bit_length() - _STEPS.bit_length())
    return -(-size // step) * step
