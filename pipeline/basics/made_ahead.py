"""Makes the next items of an iterator on another thread, while the ones before are in use."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import TypeVar

from twinsieve.pipeline.basics.daemon_executor import DaemonExecutor

_Item = TypeVar("_Item")


def made_ahead(items: Iterator[_Item], most: int) -> Iterator[_Item]:
    """The same items, none of them None. raises: what `items` raises, in the same place

    most: number of items that are made, or being made, before they are asked for
    """
    with DaemonExecutor("twinsieve-reading") as thread:
        making: deque[Future[_Item | None]] = deque()
        try:
            while True:
                while len(making) <= most:
                    making.append(thread.submit(next, items, None))
                item = making.popleft().result()
                if item is None:
                    return
                yield item
        finally:
            thread.shutdown(wait=True, cancel_futures=True)
