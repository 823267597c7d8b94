"""`DaemonExecutor`: an executor for calls that may never return."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Work = tuple[Future[Any], Callable[[], Any]]


class DaemonExecutor(Executor):
    """Makes calls one after the other in a thread that the end of the process does not wait for. For a
    `ThreadPoolExecutor` it would wait forever if a call hangs on a network file system.

    name: of the thread
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work_queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_shut = False

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Begin a call after those before it. raises: RuntimeError after `shutdown`"""
        with self._lock:
            if self._is_shut:
                raise RuntimeError(f"{self._name} was shut down")
            made: Future[_T] = Future()
            self._work_queue.put((made, partial(fn, *args, **kwargs)))
            if self._thread is None:
                self._thread = Thread(target=_work, args=(self._work_queue,), name=self._name, daemon=True)
                self._thread.start()
                # An executor that was thrown away ends its thread too.
                weakref.finalize(self, self._work_queue.put, None).atexit = False
            return made

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further calls, and end the thread after those that were taken."""
        with self._lock:
            self._is_shut = True
            while cancel_futures:
                try:
                    work = self._work_queue.get_nowait()
                except Empty:
                    break
                if work is not None:
                    work[0].cancel()
            self._work_queue.put(None)
        if wait and self._thread is not None:
            self._thread.join()


def _work(queue: SimpleQueue[_Work | None]) -> None:
    while (work := queue.get()) is not None:
        made, call = work
        if made.set_running_or_notify_cancel():
            try:
                made.set_result(call())
            except BaseException as error:  # noqa: BLE001 - handed to whoever asks for the result
                made.set_exception(error)
        # Hold nothing of this call while the thread waits for the next one.
        del work, made, call
