"""Times for people."""

from __future__ import annotations

from datetime import UTC, datetime


def shown_time(time_ms: int) -> str:
    """The time in UTC, to the second; a number of ms if no calendar has it.

    >>> shown_time(1_600_000_000_000), shown_time(1 << 62)
    ('2020-09-13 12:26:40 UTC', '4611686018427387904 ms')
    """
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        # A producer may set any timestamp.
        return f"{time_ms} ms"
