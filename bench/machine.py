"""The machine line that every measurement prints before its numbers, and the clock of the short ones."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

_TICKS_S = os.sysconf("SC_CLK_TCK")


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


class MachineTime(NamedTuple):
    """Seconds of all cores since the start of the system. idle: with those that waited for a disk"""

    idle: float
    all: float


def machine_time() -> MachineTime:
    """As the system counts it now; source: proc(5), /proc/stat."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return MachineTime((ticks[3] + ticks[4]) / _TICKS_S, sum(ticks) / _TICKS_S)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process that lives; source: proc(5), /proc/pid/stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_S


def memory_mib(pid: int | str, line: str) -> float:
    """Memory of a process that lives. pid: or `self`; line: of proc(5), /proc/pid/status, such as RssAnon"""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(found.split()[1]) / 1024 for found in status.splitlines() if found.startswith(f"{line}:"))


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
