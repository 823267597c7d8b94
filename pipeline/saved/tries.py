"""`Tries`: says when the next segment may be written, after one could not be."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Lock
from time import monotonic
from typing import Any

from twinsieve.stages.errors import StateError

AGAIN_S = 60.0
"""Seconds from a segment that could not be written to the next try: each one writes up to gigabytes, most
likely for nothing."""


class NotNowError(StateError):
    """A segment was to be written when one before it could not be; nothing was tried."""


class Tries:
    """While all is well, segments are written as they come. Once one could not be written, one is tried each
    `AGAIN_S`, until that succeeds. All threads may call it.

    refuses: whether the last segment that was tried could not be written
    failures: segments that could not be written so far; one that is tried again counts once
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._again_s = 0.0
        self._tried: int | None = None
        self._counted: int | None = None
        self.refuses = False
        self.failures = 0

    def may_begin(self, first: int) -> bool:
        """Whether to write this segment now. first: its first number"""
        with self._lock:
            if not self.refuses:
                return True
            if self._tried is not None or monotonic() < self._again_s:
                return False
            self._tried = first
            return True

    def check(self, first: int) -> None:
        """raises: NotNowError if one before this segment could not be written after it was taken"""
        with self._lock:
            if self.refuses and self._tried != first:
                raise NotNowError("the last segment could not be written")

    def ended(self, first: int, error: BaseException | None) -> None:
        """Note how the try of this segment has ended. error: None if it was written"""
        with self._lock:
            if isinstance(error, NotNowError):
                return
            self._tried, self.refuses = None, error is not None
            if error is not None:
                self._again_s = monotonic() + AGAIN_S
                self.failures += first != self._counted
                self._counted = first

    def given_up(self, first: int) -> None:
        """Note that this segment was not tried, because the window has passed it."""
        with self._lock:
            if self._tried == first:
                self._tried = None

    def note(self, first: int, written: Future[Any]) -> None:
        """Note how the write of this segment has ended."""
        if written.cancelled():
            self.given_up(first)
        else:
            self.ended(first, written.exception())
