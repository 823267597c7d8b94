"""Calls that may never return, given a limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

COMMITTED_S = 2.0
"""How long a request for committed offsets may take. A running transaction frees its offsets within
milliseconds; for others `committed_offsets` acts after this time."""
METADATA_S = 20.0
"""Greatest age of a consumer's metadata. Messages of new partitions of a topic arrive only after this time;
the clients' own defaults are minutes."""
_T = TypeVar("_T")
_Calls = SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]


class DeadlineError(Exception):
    """The call did not return in time; it may still be running, so its object must not be used again."""


class CallThread:
    """Makes the calls of one client in a thread beside the client's own, one at a time, each with a limit.

    A call that outlives its limit keeps its thread until the call returns, and the next call gets a new
    thread. The threads are daemons: a call that hangs does not stop the process from exiting.
    """

    def __init__(self) -> None:
        self._calls: _Calls | None = None

    def within(self, seconds: float, call: Callable[[], _T]) -> _T:
        """What `call()` returns or raises, if that takes no longer than `seconds`.

        raises: DeadlineError
        """
        if self._calls is None:
            self._calls = SimpleQueue()
            threading.Thread(
                target=_serve, args=(self._calls,), name="twinsieve-deadline", daemon=True
            ).start()
        answer: Future[_T] = Future()
        self._calls.put((answer, call))
        in_time = False
        try:
            in_time = bool(wait([answer], seconds).done)
        finally:
            # Also where a signal handler raises: the next call must not wait behind this one.
            if not in_time:
                self.close()
        if not in_time:
            raise DeadlineError(f"no answer within {seconds:g} s")
        return answer.result()

    def close(self) -> None:
        """End the thread as soon as it has nothing to do; a call after this gets a new thread."""
        if self._calls is not None:
            self._calls.put(None)
            self._calls = None


def _serve(calls: _Calls) -> None:
    while True:
        item = calls.get()
        if item is None:
            return
        answer, call = item
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
            answer.set_exception(error)
        # Else a thread that waits keeps alive what the last call was about, a producer for instance.
        del item, answer, call


def within(seconds: float, call: Callable[[], _T]) -> _T:
    """Make one call in a thread of its own, and wait for it no longer than `seconds`.

    raises: DeadlineError

    >>> within(5.0, lambda: 6 * 7)
    42
    """
    thread = CallThread()
    try:
        return thread.within(seconds, call)
    finally:
        thread.close()
