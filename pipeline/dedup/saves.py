"""Saves the state during a run whose kept rows go to a stream.

Rows written to a stream cannot be taken back, so the state must follow them. The run saves its state when it
is asked to stop, when an input fails, and every minute in case it is killed. It saves only between two
chunks, when every row judged so far was written. Before it stops, it also judges the rows that were read
ahead. So no row is lost; rows written after the last save are written again by the next run.
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
"""Bytes read at once to empty the wake pipe: as many as most pipes can hold."""
_TIMES_ITS_LENGTH = 9
"""The pause after a save is at least this many times as long as the save took."""


class Stop:
    """A request to stop, for a run that can save its state and stop between two chunks.

    taken: True while the run responds to requests; requested: True after a request was made
    waker: file descriptor for `signal.set_wakeup_fd`. A signal that arrives just before a wait for input
        begins, or in another thread, does not interrupt the wait; a byte written to `waker` does. The byte
        alone is not a request
    """

    def __init__(self) -> None:
        self.taken = False
        self.requested = False
        self._wake, self.waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self.waker, False)

    def ask(self) -> None:
        """Request a stop, and interrupt a wait for input; a signal handler may call this."""
        self.requested = True
        # If the pipe is full, the byte is not needed: the bytes in the pipe interrupt the wait too.
        with suppress(BlockingIOError):
            os.write(self.waker, b"x")

    def wait_for(self, descriptor: int, seconds: float | None) -> bool:
        """Wait for input on a descriptor; True if there is some, False after `seconds` or an interruption.

        seconds: None waits without limit
        """
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
    """Decides when the state is saved.

    stop: the request to stop; save: function that saves the current state
    rows: returns the number of judged rows; without new rows no save is due
    every_s: seconds from the end of a save to the next save, at least
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
        """Save if a save is due and there are new rows; call it only between two chunks. raises: FileError"""
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
        """Wait until there is something to read; save meanwhile if due. raises: StoppedError, FileError"""
        while True:
            if self.stop.requested:
                raise StoppedError
            new = self._rows() != self._saved_rows
            left_s = max(self._due_s - monotonic(), 0.0) if new else None
            if self.stop.wait_for(descriptor, left_s):
                return
            if not self.stop.requested:
                self.save_if_due()
