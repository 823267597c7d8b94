"""Time limits for calls of a client library that may never return."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

COMMITTED_S = 2.0
"""How long a request for committed offsets may take. The broker answers only after an open transaction that
holds offsets has ended. A live worker ends it within milliseconds; if the request still takes longer than
this, `committed_offsets` handles the transaction."""
METADATA_S = 5.0
"""Greatest age of a client's metadata. A consumer may notice new partitions of a topic only after this time,
and delivers none of their messages before; a producer chooses partitions by key among those that it knows.
The library's default is minutes."""
UNKNOWN_S = 2.0
"""How long a producer asks for metadata when a message is for a partition that it does not know. Partitions
may have been added, and a broker may answer without them for a moment."""
_T = TypeVar("_T")
_Calls = SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]


class DeadlineError(Exception):
    """The call did not return in time; it may still be running, so its object must not be used again."""


class CallThread:
    """Makes the calls of one client in a helper thread, one call at a time, each with a time limit.

    A call that exceeds its limit keeps its thread until the call returns, and the next call gets a new
    thread. The threads are daemons, so a call that hangs does not stop the process from exiting.
    """

    def __init__(self) -> None:
        self._calls: _Calls | None = None

    def within(self, seconds: float, call: Callable[[], _T]) -> _T:
        """The result of `call()`, or the error that it raises, within `seconds`.

        raises: DeadlineError if the call takes longer
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
            # In a finally block, because a signal handler may raise in wait(): the next call must not queue
            # behind this one.
            if not in_time:
                self.close()
        if not in_time:
            raise DeadlineError(f"no answer within {seconds:g} s")
        return answer.result()

    def close(self) -> None:
        """End the thread after its current call; a later call gets a new thread."""
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
        except BaseException as error:  # noqa: BLE001 - passed to the caller, which raises it
            answer.set_exception(error)
        # Otherwise the waiting thread would keep objects of the last call alive, for instance a producer.
        del item, answer, call


def within(seconds: float, call: Callable[[], _T]) -> _T:
    """The result of `call()`, made in its own thread, within `seconds`.

    raises: DeadlineError if the call takes longer

    >>> within(5.0, lambda: 6 * 7)
    42
    """
    thread = CallThread()
    try:
        return thread.within(seconds, call)
    finally:
        thread.close()
