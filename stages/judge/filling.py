"""Threads that put kept messages into the candidate index, in a restore."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from typing import Self

from twinsieve.stages.window.chunk import Chunk

_THREADS = 2
_CHUNKS_AHEAD = 16
"""Chunks that may wait for the threads. With fewer, a thread that is late keeps all others waiting."""

Insert = Callable[[Chunk, int, int, int], None]
"""Inserts the rows of a chunk: (chunk, kept index of its first row, first and end of the tables)."""


class Filling:
    """A context manager that holds the threads; each fills its part of the tables, in the order of keeping.

    insert: called from the threads, with one chunk after the other; tables: number of tables
    """

    def __init__(self, insert: Insert, tables: int) -> None:
        self._insert = insert
        self._parts = [*pairwise(tables * part // _THREADS for part in range(_THREADS + 1))]
        self._working: deque[list[Future[None]]] = deque()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            # One queue each, because the entries of a table must be inserted in order.
            self._threads = [undo.enter_context(ThreadPoolExecutor(1)) for _ in self._parts]
            self._ended = undo.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.close()

    def add(self, chunk: Chunk, kept_index: int) -> None:
        """Begin to insert the rows of a chunk. kept_index: of its first row; the others follow

        raises: what an insertion before raised
        """
        self._wait(_CHUNKS_AHEAD)
        self._working.append(
            [
                thread.submit(self._insert, chunk, kept_index, *part)
                for thread, part in zip(self._threads, self._parts, strict=True)
            ]
        )

    def finish(self) -> None:
        """Wait until all messages are in the index. raises: what an insertion raised"""
        self._wait(0)

    def _wait(self, chunks: int) -> None:
        while len(self._working) > chunks:
            for each in self._working.popleft():
                each.result()
