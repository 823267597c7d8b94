"""What `twinsieve tune` takes: time, memory, and the size of its report.

    python -m bench.tune FILE [--runs 3] [-- OPTIONS of tune]

Each run is a process of its own that reads FILE, tries all settings and writes the report. Memory is the
peak of the process, as the operating system counts it (ru_maxrss). The machine is shared: quote the median.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.machine import machine_line

_ROOT = Path(__file__).resolve().parent.parent


def run(source: Path, options: list[str]) -> tuple[float, float, int, int]:
    """(seconds, CPU seconds, peak memory in bytes, bytes of the report) of one run."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tune.html"
        command = [sys.executable, "-m", "twinsieve", "tune", str(source.resolve()), "--report", str(report)]
        began_s = time.monotonic()
        process = subprocess.Popen(
            [*command, *options], cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"tune ended with {process.returncode}")
        return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss << 10, report.stat().st_size


def main() -> None:
    """Print machine, each run and the medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path, metavar="FILE")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("options", nargs="*", metavar="OPTION")
    given = parser.parse_args()
    print(machine_line())
    print(f"{given.source.name} {' '.join(given.options)}", flush=True)
    runs = []
    for number in range(1, given.runs + 1):
        runs.append(run(given.source, given.options))
        print(f"run {number}: {_shown(runs[-1])}", flush=True)
    seconds, cpu_s, memory, size = (median(values) for values in zip(*runs, strict=True))
    print(f"median: {_shown((seconds, cpu_s, memory, size))}")


def _shown(measured: tuple[float, float, float, float]) -> str:
    seconds, cpu_s, memory, size = measured
    return f"{seconds:.1f} s, {cpu_s:.1f} s of CPU, {memory / 2**20:,.0f} MiB, report {size / 1000:,.0f} kB"


if __name__ == "__main__":
    main()
