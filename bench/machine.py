"""The machine line that every measurement prints before its numbers, and the clock of the short ones."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path


def machine_line() -> str:
    """CPU, usable cores, memory, system, Python, NumPy and Numba, in one line; no date, no host name.

    >>> machine_line().startswith("machine: ")
    True
    """
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"machine: {_cpu_name()}, {len(os.sched_getaffinity(0))} cores, {memory_gib:.0f} GiB, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"numpy {version('numpy')}, numba {version('numba')}"
    )


def best_seconds(call: Callable[[], object], runs: int) -> float:
    """Least time of several runs; noise of a shared machine only ever adds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown CPU"
