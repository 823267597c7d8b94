"""Saves of a run whose kept rows are a stream: a written row is in the state or written again; none is lost.

Rows of a stream cannot be taken back. A run that ends early therefore saves its state: when it is asked to
stop, when an input fails, and every minute against a kill. It saves between two chunks, where every row
that was read was judged and written. Rows that come out after the last save come out again in the next run.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from twinsieve.pipeline.files.source import StoppedError

SAVE_EVERY_S = 60.0
_MAX_WAKES = 1 << 16
"""Bytes that most pipes hold."""
_TIMES_ITS_LENGTH = 9
"""The pause after a save is this many times as long as the save took, at least."""


class Stop:
    """A request to stop, which a run that can stop in good order takes.

    taken: a run takes requests now; requested: one was made
    waker: for `signal.set_wakeup_fd`: a signal that comes just before a wait for input begins, or to another
        thread, does not interrupt the wait, but a byte written here does. The byte itself requests nothing
    """

    def __init__(self) -> None:
        self.taken = False
        self.requested = False
        self._wake, self.waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self.waker, False)

    def ask(self) -> None:
        """Ask for a stop, and end a wait for input; may be called by a signal handler."""
        self.requested = True
        # A pipe that is full wakes as well.
        with suppress(BlockingIOError):
            os.write(self.waker, b"x")

    def wait_for(self, descriptor: int, seconds: float | None) -> bool:
        """Whether there is something to read; False when the seconds are over or the wait was ended."""
        ready, _, _ = select.select([descriptor, self._wake], [], [], seconds)
        if self._wake in ready:
            with suppress(BlockingIOError):
                os.read(self._wake, _MAX_WAKES)
        return descriptor in ready and not self.requested

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self._wake)
        os.close(self.waker)


class Saves:
    """When to save.

    save: saves the present state; rows: how many were judged, so that nothing is saved twice
    every_s: seconds between the end of a save and the next one
    """

    def __init__(
        self, stop: Stop, save: Callable[[], None], rows: Callable[[], int], every_s: float = SAVE_EVERY_S
    ) -> None:
        self.stop = stop
        self._save = save
        self._rows = rows
        self._every_s = every_s
        self._saved_rows = rows()
        self._due_s = monotonic() + every_s

    def save_if_due(self) -> None:
        """Save if it is time and there is something new; called between two chunks. raises: FileError"""
        if self._rows() != self._saved_rows and monotonic() >= self._due_s:
            self.save()

    def save(self) -> None:
        """Save now. raises: FileError"""
        began_s = monotonic()
        self._save()
        self._saved_rows = self._rows()
        ended_s = monotonic()
        self._due_s = ended_s + max(self._every_s, (ended_s - began_s) * _TIMES_ITS_LENGTH)

    def wait(self, descriptor: int) -> None:
        """Return when there is something to read; saves meanwhile. raises: StoppedError, FileError"""
        while True:
            if self.stop.requested:
                raise StoppedError
            new = self._rows() != self._saved_rows
            left_s = max(self._due_s - monotonic(), 0.0) if new else None
            if self.stop.wait_for(descriptor, left_s):
                return
            if not self.stop.requested:
                self.save_if_due()
