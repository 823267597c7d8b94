"""How many processors this process may use."""

from __future__ import annotations

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def cores() -> int:
    """Number of cores that this process may use, by its CPU affinity and the limit of its control group."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, _, period = _QUOTA.read_text().partition(" ")
        limit = -(-int(quota) // int(period))
    except (OSError, ValueError):
        return allowed
    return max(1, min(allowed, limit))
