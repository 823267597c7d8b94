"""`WatchedStream`: counts and hashes the bytes of another stream, and reports them."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Protocol


class Hasher(Protocol):
    """A hash of all bytes that it was given so far."""

    def update(self, data: bytes, /) -> object:
        """Add these bytes."""


class WatchedStream:
    """A stream that passes bytes on to another one, or reads them from it.

    stream: the other one; None discards what is written
    moved: called after each read or write with its number of bytes; hasher: gets all bytes
    count: bytes so far
    """

    def __init__(
        self, stream: BinaryIO | None, moved: Callable[[int], None], hasher: Hasher | None = None
    ) -> None:
        self._stream = stream
        self._moved = moved
        self._hasher = hasher
        self.count = 0

    def write(self, data: bytes) -> int:
        size = memoryview(data).nbytes
        if self._stream is not None:
            self._stream.write(data)
        self._pass(data, size)
        return size

    def read(self, size: int = -1) -> bytes:
        data = b"" if self._stream is None else self._stream.read(size)
        self._pass(data, len(data))
        return data

    def _pass(self, data: bytes, size: int) -> None:
        if self._hasher is not None:
            self._hasher.update(data)
        self.count += size
        self._moved(size)
