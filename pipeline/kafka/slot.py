"""Whether another process has taken this one's place in its group."""

from __future__ import annotations

import time
from collections.abc import Callable

_HEARTBEATS = 2


class Slot:
    """Asks the group consumers of this process whether they were displaced.

    Kafka says "producer fenced" both when another process has taken over a transactional id and when a
    transaction merely timed out, for instance while the broker was away. A process must end in the
    first case and go on in the second. A static member that was displaced is certain: whoever takes a
    slot over takes its member name too.
    """

    def __init__(self, heartbeat_s: float) -> None:
        self._wait_s = _HEARTBEATS * heartbeat_s
        self._fenced: list[Callable[[], bool]] = []

    def watch(self, fenced: Callable[[], bool]) -> None:
        """`fenced` says whether one consumer was displaced; it may ask the broker, shortly."""
        self._fenced.append(fenced)

    def unwatch(self, fenced: Callable[[], bool]) -> None:
        """That consumer is closed."""
        self._fenced.remove(fenced)

    def taken(self) -> bool:
        """True if a consumer was displaced; waits two heartbeats, as that is how a consumer learns of it."""
        deadline = time.monotonic() + self._wait_s
        while self._fenced:
            if any(fenced() for fenced in self._fenced):
                return True
            if time.monotonic() >= deadline:
                break
            time.sleep(0.05)
        return False
