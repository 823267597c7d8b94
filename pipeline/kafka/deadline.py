"""Calls that may never return, given a limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

COMMITTED_S = 2.0
"""How long a question for committed offsets may take. One that a living transaction holds back is free within
milliseconds; for the others `committed_offsets` does something, and the sooner the better."""
METADATA_S = 20.0
"""How old what a consumer knows of its topics may get. A topic that has grown brings no messages of its new
partitions before that; the clients' own defaults are minutes."""
_T = TypeVar("_T")


class DeadlineError(Exception):
    """The call did not return in time; it may still be running, so its object must not be used again."""


def within(seconds: float, call: Callable[[], _T]) -> _T:
    """What `call()` returns or raises, if that takes no longer than `seconds`.

    kafka-python 3.0.12 waits without limit in send_offsets_to_transaction, commit_transaction and
    abort_transaction, and for ever when the broker restarts inside a transaction. The helper thread is
    a daemon: one that hangs keeps nobody from exiting.
    raises: DeadlineError

    >>> within(5.0, lambda: 6 * 7)
    42
    """
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
            errors.append(error)

    thread = threading.Thread(target=run, name="twinsieve-deadline", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise DeadlineError(f"no answer within {seconds:g} s")
    return results[0]
