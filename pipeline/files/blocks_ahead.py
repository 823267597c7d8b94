"""Reads and unpacks the next blocks of a file on another thread, while the blocks before are worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

_AHEAD = 2
"""Blocks that wait at most; of 1 MiB each, as a rule."""


def blocks_ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks. raises: what `blocks` raises, in the same place"""
    with ThreadPoolExecutor(1, "twinsieve-read") as thread:
        reading: deque[Future[bytes | None]] = deque()
        try:
            while True:
                while len(reading) <= _AHEAD:
                    reading.append(thread.submit(next, blocks, None))
                block = reading.popleft().result()
                if block is None:
                    return
                yield block
        finally:
            thread.shutdown(wait=True, cancel_futures=True)
