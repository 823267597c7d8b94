"""A pipe that is full and that nobody reads, as of a log collector that hangs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def full_pipe() -> Iterator[int]:
    """The descriptor to write to, which a caller may close; a write waits until the end of the context, and then
    fails."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writes, bytes(4096))
    os.set_blocking(writes, True)
    try:
        yield writes
    finally:
        os.close(reads)
