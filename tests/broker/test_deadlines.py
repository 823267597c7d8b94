"""Calls with a limit: one thread for all calls of a client, and a call that hangs holds up nothing but itself."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import weakref
from functools import partial

import pytest

from tests.broker.worlds import until
from twinsieve.pipeline.kafka.deadline import CallThread, DeadlineError, within

_LONG_S = 30.0
_HANGS = """
import threading
from twinsieve.pipeline.kafka.deadline import CallThread, DeadlineError
try:
    CallThread().within(0.01, threading.Event().wait)
except DeadlineError:
    print("given up")
"""


class Thing:
    """Something that can be watched."""


def test_all_calls_are_made_by_one_thread() -> None:
    calls = CallThread()
    threads = {calls.within(_LONG_S, threading.get_ident) for _ in range(5)}
    calls.close()
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


def test_a_call_that_never_returns_is_given_up() -> None:
    with pytest.raises(DeadlineError):
        within(0.05, lambda: time.sleep(5))


def test_a_call_that_hangs_holds_up_no_other_and_its_thread_ends_with_it() -> None:
    calls, released = CallThread(), threading.Event()
    hung: list[threading.Thread] = []

    def hang() -> None:
        hung.append(threading.current_thread())
        released.wait()

    with pytest.raises(DeadlineError):
        calls.within(1.0, hang)  # a busy machine starts the thread late
    assert calls.within(_LONG_S, threading.current_thread) is not hung[0]
    assert hung[0].is_alive()
    released.set()
    hung[0].join(_LONG_S)
    assert not hung[0].is_alive()
    calls.close()


def test_a_call_that_a_signal_interrupts_holds_up_no_other() -> None:
    class StopError(Exception):
        """What the signal's handler raises."""

    def stop(*_: object) -> None:
        raise StopError

    calls, released = CallThread(), threading.Event()
    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(StopError):
            calls.within(_LONG_S, lambda: (signal.setitimer(signal.ITIMER_REAL, 0.05), released.wait()))
        assert calls.within(_LONG_S, lambda: 7) == 7
    finally:
        released.set()
        signal.signal(signal.SIGALRM, before)
    calls.close()


def test_a_closed_thread_ends_and_a_later_call_gets_another() -> None:
    calls = CallThread()
    first = calls.within(_LONG_S, threading.current_thread)
    calls.close()
    calls.close()
    first.join(_LONG_S)
    assert not first.is_alive()
    assert calls.within(_LONG_S, lambda: 7) == 7
    calls.close()


@pytest.mark.parametrize("error", [TimeoutError("its own"), KeyError("no"), SystemExit(3)])
def test_errors_of_a_call_are_its_own(error: BaseException) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        within(_LONG_S, fails)
    assert raised.value is error


def test_a_thread_that_waits_keeps_nothing_of_its_last_call() -> None:
    """A whole producer, for instance."""
    calls = CallThread()
    thing = Thing()
    watched = weakref.ref(thing)
    calls.within(_LONG_S, partial(id, thing))
    del thing
    until(lambda: watched() is None)
    calls.close()


def test_a_call_that_hangs_keeps_no_process_from_its_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HANGS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("given up\n", 0), done.stderr
