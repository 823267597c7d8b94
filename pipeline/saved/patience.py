"""`RecordRoom`: how many records may wait to be written, and how long a sieve waits for room."""

from __future__ import annotations

from collections.abc import Callable
from threading import BoundedSemaphore
from time import monotonic

WAITING = 3
"""Records that may wait to be written, or are being written; then the sieve waits too."""
PATIENCE_S = 5.0
"""How long a sieve that must not stand still waits for a slow disk, in all; after that it goes on without
waiting, and records that find no room are lost."""
_PATIENCE_BACK_S = 0.05
"""Each record that found room gives this much patience back. A restore, which keeps messages faster than a
disk may write them, so waits for each flush; a disk that is slower than the input does not slow judging."""


class RecordRoom:
    """Room for `WAITING` records.

    patience_s: how long `take` waits, in all; None: as long as it takes
    hangs: whether the disk hangs; then `take` does not wait
    is_stuck: whether `take` found no room, and no record was written since; then it does not wait either
    """

    def __init__(self, patience_s: float | None, hangs: Callable[[], bool] = lambda: False) -> None:
        self._room = BoundedSemaphore(WAITING)
        self._limit_s = self._patience_s = patience_s
        self._hangs = hangs
        self.is_stuck = False

    def take(self) -> bool:
        """Wait for room for a record, as long as the patience lasts; returns whether there is room."""
        if self._patience_s is None or self._limit_s is None:
            return self._room.acquire()
        if self._room.acquire(blocking=False):
            self._patience_s = min(self._limit_s, self._patience_s + _PATIENCE_BACK_S)
            return True
        if self.is_stuck:
            return False
        began_s = monotonic()
        waits = self._patience_s > 0 and not self._hangs()
        has_room = waits and self._room.acquire(timeout=self._patience_s)
        self._patience_s = max(0.0, self._patience_s - (monotonic() - began_s))
        self.is_stuck = not has_room
        return has_room

    def give_back(self) -> None:
        """Note that a record is written, or lost."""
        self.is_stuck = False
        self._room.release()
