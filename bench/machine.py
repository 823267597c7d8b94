"""The machine line that every measurement prints before its numbers."""

from __future__ import annotations

import os
import platform
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


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown CPU"
