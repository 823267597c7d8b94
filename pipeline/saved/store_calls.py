"""`StoreCalls`: the calls to a store that have not returned yet, so that one that hangs can be named.

A network file system whose server is away makes calls wait, for hours if it is mounted hard. Only another
thread can say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, get_ident
from time import monotonic
from typing import Any, BinaryIO, NamedTuple

HUNG_S = 8.0
"""A call that has not returned for this long is reported."""


class StoreCall(NamedTuple):
    """A call that has not returned. store: address; doing: what it does; thread: name of its thread"""

    store: str
    doing: str
    thread: str
    since_s: float

    @property
    def seconds(self) -> float:
        """For how long it has been running."""
        return monotonic() - self.since_s

    def __str__(self) -> str:
        return f"{self.store}: a call to {self.doing} has not returned for {self.seconds:.0f} s"


class StoreCalls:
    """The open calls of all threads; at most one of each thread."""

    def __init__(self) -> None:
        self._open: dict[int, StoreCall] = {}

    @contextmanager
    def doing(self, store: str, what: str) -> Iterator[None]:
        """Context manager around a call."""
        thread = get_ident()
        is_inside = thread in self._open
        if not is_inside:
            self._open[thread] = StoreCall(store, what, current_thread().name, monotonic())
        try:
            yield
        finally:
            if not is_inside:
                del self._open[thread]

    def oldest(self) -> StoreCall | None:
        """The call that has been running for longest; None if there is none."""
        return min(list(self._open.values()), key=lambda call: call.since_s, default=None)

    def hung(self) -> StoreCall | None:
        """The oldest call if it has been running for `HUNG_S`, else None."""
        oldest = self.oldest()
        return oldest if oldest is not None and oldest.seconds >= HUNG_S else None


class HungWatch:
    """Notices when a call begins to count as hung, and when none does any more."""

    def __init__(self, calls: StoreCalls) -> None:
        self._calls = calls
        self._noticed: StoreCall | None = None

    def look(self) -> tuple[StoreCall | None, StoreCall | None]:
        """(a call that hangs since the last look, the call that hung until then), each once; else None."""
        hung, before = self._calls.hung(), self._noticed
        self._noticed = hung if before is None or hung is None else before
        return (hung if before is None else None), (before if hung is None else None)


class CalledStream:
    """A stream of a store, whose reads, writes and end are noted as calls."""

    def __init__(self, stream: BinaryIO, calls: StoreCalls, name: str) -> None:
        self._stream = stream
        self._calls = calls
        self._name = name

    def read(self, size: int = -1) -> bytes:
        with self._calls.doing(self._name, "read"):
            return self._stream.read(size)

    def write(self, data: bytes) -> int:
        with self._calls.doing(self._name, "write"):
            return self._stream.write(data)

    def close(self) -> None:
        with self._calls.doing(self._name, "close"):
            self._stream.close()

    def __enter__(self) -> CalledStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
