"""Kafka throughput and latency of two checkouts, measured in turn: five pairs, every ratio printed.

    python -m bench.kafka_paired OLD NEW [--client confluent] [--pairs 5] [--messages N]

OLD, NEW: folders of checkouts, each with its installation in `.venv`. Each is measured by its own
`bench.kafka_throughput` and `bench.kafka_latency`, with their defaults; `--messages`: of the throughput runs
that count. One uncounted throughput run of each compiles the kernels. The machine's speed drifts, so quote
the median ratio; above 1 the new one is better.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench.machine import machine_line

_RATE = re.compile(r"([\d,]+) messages/s")
_LATENCY = re.compile(r"p50 (\d+) ms, p99 (\d+) ms")
_SOUND = re.compile(r"\b0 lost, 0 extra\b")


def run(checkout: Path, bench: str, client: str, *more: str) -> str:
    """What a bench of a checkout prints; ends the program where it fails."""
    command = [checkout / ".venv/bin/python", "-m", f"bench.{bench}", "--client", client, *more]
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, cwd=checkout, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{checkout}: {' '.join(map(str, command[1:]))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def measured(pattern: re.Pattern[str], said: str) -> list[float]:
    """The last numbers of this kind in what was printed."""
    found = pattern.findall(said)
    if not found:
        sys.exit(f"no {pattern.pattern!r} in:\n{said}")
    last = found[-1]
    return [float(number.replace(",", "")) for number in ([last] if isinstance(last, str) else last)]


def main() -> None:
    """Print machine, each pair and the median ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--client", default="kafka-python", choices=["kafka-python", "confluent"])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--messages", help="default: that of bench.kafka_throughput")
    given = parser.parse_args()
    checkouts = {"old": given.old.absolute(), "new": given.new.absolute()}
    size = ["--messages", given.messages] if given.messages else []
    print(f"{machine_line()}\n{' '.join([given.client, *size])}", flush=True)
    for checkout in checkouts.values():
        run(checkout, "kafka_throughput", given.client)
    ratios: dict[str, list[float]] = {"throughput": [], "p50": [], "p99": []}
    for pair in range(1, given.pairs + 1):
        order = ("old", "new") if pair % 2 else ("new", "old")
        rates, times = {}, {}
        for label in order:
            said = run(checkouts[label], "kafka_throughput", given.client, *size)
            rates[label] = measured(_RATE, said)[0]
        for label in order:
            said = run(checkouts[label], "kafka_latency", given.client)
            if not _SOUND.search(said):
                sys.exit(f"{label}: {said}")
            times[label] = measured(_LATENCY, said)
        ratios["throughput"].append(rates["new"] / rates["old"])
        for place, name in enumerate(("p50", "p99")):
            ratios[name].append(times["old"][place] / times["new"][place])
        shown = ", ".join(
            f"{label} {rates[label]:,.0f}/s p50 {times[label][0]:.0f} ms p99 {times[label][1]:.0f} ms"
            for label in ("old", "new")
        )
        print(
            f"pair {pair}: {shown}; " + ", ".join(f"{name} {each[-1]:.2f}" for name, each in ratios.items())
        )
        sys.stdout.flush()
    print("median: " + ", ".join(f"{name} {median(each):.3f}" for name, each in ratios.items()))


if __name__ == "__main__":
    main()
