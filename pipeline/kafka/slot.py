"""Whether another process has taken this one's place in its group."""

from __future__ import annotations

import time
from collections.abc import Callable


def taken(fenced: Callable[[], bool] | None, wait_s: float) -> bool:
    """True if the group consumer behind `fenced` was displaced by another process of the same member name.

    Kafka says "producer fenced" both when another process has taken over a transactional id and when a
    transaction merely timed out, for instance while the broker was away. A process must end in the
    first case and go on in the second. A static member that was displaced is certain: whoever takes a
    slot over takes its member name too.

    fenced: None where the producer has not committed offsets for any consumer yet
    wait_s: a consumer learns of it by a heartbeat, so this long at most is waited

    >>> taken(lambda: True, 3.0), taken(None, 3.0)
    (True, False)
    """
    if fenced is None:
        return False
    deadline = time.monotonic() + wait_s
    while not fenced():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True
