"""Throughput on Kafka, CPU, memory and latency of two checkouts, in turn: five pairs, every ratio printed.

    python -m bench.kafka_paired OLD NEW [--pairs 5] [--messages N] [--more N] [--no-latency]

OLD, NEW: folders of checkouts. Each runs in its folder with the Python of its `.venv`, or else with this one.
`bench.kafka_throughput` (two figures each) and `bench.kafka_latency` run the programs of both; settings are
written as this checkout knows them. `--messages`, `--more`: of the two figures.
The machine's speed drifts, so quote the median ratio; above 1 the new one is better.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from bench.kafka_latency import latency
from bench.kafka_meter import FIRST, SECOND, prepared
from bench.kafka_throughput import throughput
from bench.machine import machine_line


def main() -> None:
    """Print machine, each pair and the median ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--messages", type=int, default=FIRST, help="of the first figure")
    parser.add_argument("--more", type=int, default=SECOND, help="messages of the second figure")
    parser.add_argument("--no-latency", action="store_true", help="throughput, CPU and memory alone")
    given = parser.parse_args()
    programs = {"old": _program_of(given.old), "new": _program_of(given.new)}
    for program in programs.values():
        subprocess.run([*program, "warm-up", "-q"], check=True)
    posts = prepared(given.messages, given.more)
    print(
        f"{machine_line()}; load before {os.getloadavg()[0]:.1f}\ninput: generated posts: {posts}", flush=True
    )
    ratios: dict[str, list[float]] = defaultdict(list)
    for pair in range(1, given.pairs + 1):
        order = ("old", "new") if pair % 2 else ("new", "old")
        runs = {label: throughput(posts, programs[label]) for label in order}
        for label in ("old", "new"):
            print(f"pair {pair}, {label}: {runs[label]}", flush=True)
            if not runs[label].found.good:
                sys.exit(f"{label}: {runs[label].found}")
        old, new = runs["old"], runs["new"]
        ratios["throughput"].append(new.first.rate / old.first.rate)
        ratios["CPU"].append(old.first.cpu / new.first.cpu)
        ratios["slope: throughput"].append(new.second.rate / old.second.rate)
        ratios["slope: CPU"].append(old.second.cpu / new.second.cpu)
        ratios["memory"].append(old.peak_mib / new.peak_mib)
        if not given.no_latency:
            times = {label: latency(program=programs[label]) for label in order}
            for label in ("old", "new"):
                print(f"pair {pair}, {label}: {times[label]}", flush=True)
                if times[label].lost or times[label].extra:
                    sys.exit(f"{label}: messages were lost or came twice")
            ratios["p50"].append(times["old"].p50_ms / times["new"].p50_ms)
            ratios["p99"].append(times["old"].p99_ms / times["new"].p99_ms)
        print(
            f"pair {pair}: " + ", ".join(f"{name} {each[-1]:.2f}" for name, each in ratios.items()),
            flush=True,
        )
    print("median: " + ", ".join(f"{name} {median(each):.3f}" for name, each in ratios.items()))


def _program_of(checkout: Path) -> list[str]:
    """Command line of a checkout's program. Python looks for modules in the folder that it runs in first."""
    folder = checkout.absolute()
    own = folder / ".venv" / "bin" / "python"
    return ["env", f"--chdir={folder}", str(own if own.exists() else sys.executable), "-m", "twinsieve"]


if __name__ == "__main__":
    main()
