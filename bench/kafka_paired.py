"""Throughput on Kafka, CPU, memory and latency of two checkouts, in turn: five pairs, every ratio printed.

    python -m bench.kafka_paired OLD NEW [--pairs 5] [--messages N]

OLD, NEW: folders of checkouts, each with its installation in `.venv`. `bench.kafka_throughput` and
`bench.kafka_latency` run the programs of both; settings are written as this checkout knows them.
`--messages`: of the throughput runs that count. One uncounted throughput run of each compiles the kernels.
The machine's speed drifts, so quote the median ratio; above 1 the new one is better.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

from bench.kafka_latency import latency
from bench.kafka_throughput import MESSAGES, Throughput, throughput
from bench.machine import machine_line
from tests.broker.deployment import Findings

_LIMIT_S = 300.0


def main() -> None:
    """Print machine, each pair and the median ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    given = parser.parse_args()
    programs = {
        label: [str(checkout.absolute() / ".venv/bin/twinsieve")]
        for label, checkout in (("old", given.old), ("new", given.new))
    }
    print(f"{machine_line()}\n{given.messages} messages", flush=True)
    for program in programs.values():
        throughput(MESSAGES, None, _LIMIT_S, program=program)
    ratios: dict[str, list[float]] = {"throughput": [], "CPU": [], "memory": [], "p50": [], "p99": []}
    for pair in range(1, given.pairs + 1):
        order = ("old", "new") if pair % 2 else ("new", "old")
        runs: dict[str, Throughput] = {}
        times: dict[str, Findings] = {}
        for label in order:
            runs[label] = throughput(given.messages, None, _LIMIT_S, program=programs[label])
        for label in order:
            times[label] = latency(program=programs[label])
            if times[label].lost or times[label].extra:
                sys.exit(f"{label}: {times[label]}")
        old, new = times["old"], times["new"]
        ratios["throughput"].append(runs["new"].rate / runs["old"].rate)
        ratios["CPU"].append(runs["old"].cpu / runs["new"].cpu)
        ratios["memory"].append(runs["old"].peak_mib / runs["new"].peak_mib)
        ratios["p50"].append(old.p50_ms / new.p50_ms)
        ratios["p99"].append(old.p99_ms / new.p99_ms)
        for label in ("old", "new"):
            print(
                f"pair {pair}, {label}: {runs[label].said}; "
                f"p50 {times[label].p50_ms:.0f} ms, p99 {times[label].p99_ms:.0f} ms"
            )
        print(f"pair {pair}: " + ", ".join(f"{name} {each[-1]:.2f}" for name, each in ratios.items()))
        sys.stdout.flush()
    print("median: " + ", ".join(f"{name} {median(each):.3f}" for name, each in ratios.items()))


if __name__ == "__main__":
    main()
