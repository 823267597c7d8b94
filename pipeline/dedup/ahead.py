"""Overlaps the steps of a run: while one chunk is judged, the next ones are made ready on other threads.

The steps of a chunk mostly run in kernels, which need no interpreter (GIL), so several cores work at the same
time. The order stays the same: each step takes one chunk after the other, and only one is judged at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Generic, TypeVar

from twinsieve.pipeline.files.source import StoppedError
from twinsieve.stages.errors import SieveError

_Read = TypeVar("_Read")
_Half = TypeVar("_Half")
_Made = TypeVar("_Made")

_AHEAD = 3
"""Items that are made ready, or are ready, before they are asked for. More take memory and save no time."""


class Ahead(Generic[_Read, _Half, _Made]):
    """The results of two steps for some items, in their order; the next items are made ready before.

    items: read by the thread that asks for the results
    first, second: the steps; the second one takes the result of the first one
    threads: one for each step, so that both work at the same time; None to do both when a result is asked for
    is_ready: whether the next item can be read without a wait; while it cannot, what was read comes out first
    """

    def __init__(
        self,
        items: Iterator[_Read],
        first: Callable[[_Read], _Half],
        second: Callable[[_Half], _Made],
        threads: tuple[Executor, Executor] | None,
        is_ready: Callable[[], bool],
    ) -> None:
        self._items = items
        self._first = first
        self._second = second
        self._threads = threads
        self._is_ready = is_ready
        self._making: deque[Future[_Made]] = deque()
        self._ended = False
        self._error: Exception | None = None

    def stop(self) -> None:
        """Read no more items; those that were read still come out."""
        self._ended = True

    def __iter__(self) -> Iterator[_Made]:
        return self

    def __next__(self) -> _Made:
        """The next result. raises: what reading an item raised, after the results of the items before it"""
        if self._threads is None:
            if self._ended:
                raise StopIteration
            return self._second(self._first(next(self._items)))
        while not self._ended and len(self._making) < _AHEAD and (not self._making or self._is_ready()):
            self._read(*self._threads)
        if self._making:
            return self._making.popleft().result()
        if self._error is not None:
            raise self._error
        raise StopIteration

    def _read(self, first: Executor, second: Executor) -> None:
        try:
            half = first.submit(self._first, next(self._items))
        except StopIteration:
            self._ended = True
        except (SieveError, StoppedError) as error:
            self._ended, self._error = True, error
        else:
            self._making.append(second.submit(lambda: self._second(half.result())))
