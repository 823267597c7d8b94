"""Rate and CPU of two versions on Kafka, measured in turn: five pairs, every ratio printed.

    python -m bench.kafka_cpu OLD NEW [--client confluent] [--counters] [--new-set KEY=VALUE] [--pairs 5]

OLD, NEW: the programs, for example `../before/.venv/bin/twinsieve` and `.venv/bin/twinsieve`; their kernels
are compiled. A broker, two workers and the index, each a process. `--counters`: posts with a counter
(`bench.counters`, 20,000 with 25 numbers each) instead of generated ones. `--new-set`: a setting for NEW
alone, to give it the defaults of OLD. The clock runs from the first committed input offset that is seen to
the last.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.counters import NUMBERS, POSTS, texts_of
from bench.kafka_throughput import progress
from bench.machine import cpu_seconds, machine_line
from bench.peers.programs import fill
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment
from twinsieve.pipeline.tools.generate.stream import generate

_LIMIT_S = 300.0
_WORKERS = ("a", "b")


class Run(NamedTuple):
    """rate: messages a second; index, all: µs of CPU a message, of the index and of all three processes"""

    rate: float
    index: float
    all: float


def counter_posts(messages: int) -> Iterator[dict[str, Any]]:
    """Posts with a counter."""
    texts = chain.from_iterable(texts_of(POSTS, NUMBERS, messages, random.Random(1)))
    return ({"id": str(number), "text": text} for number, text in enumerate(texts))


def measured(program: Path, sets: Sequence[str], client: str, messages: int, *, counters: bool) -> Run:
    """One run, on a broker of its own."""
    with Cluster().start() as cluster:
        deployment = Deployment(
            cluster.bootstrap,
            client,
            "cpu",
            snapshot_every="5m",
            program=[str(program.absolute())],
            sets=sets,
        )
        deployment.create_topics()
        posts = counter_posts(messages) if counters else generate(messages, 1)
        sent = len(fill(cluster.bootstrap, "cpu.in", posts))
        try:
            pids = [deployment.start("index", role="index").pid]
            pids += [deployment.start(name, role="worker").pid for name in _WORKERS]
            (first_s, before), *_ = progress(cluster.bootstrap, "cpu.workers", "cpu.in", 1, _LIMIT_S)
            began = [cpu_seconds(pid) for pid in pids]
            (last_s, done) = progress(cluster.bootstrap, "cpu.workers", "cpu.in", sent, _LIMIT_S)[-1]
            used = [cpu_seconds(pid) - start for pid, start in zip(pids, began, strict=True)]
        finally:
            deployment.close()
    if done < sent:
        raise SystemExit(f"{program}: {done:,} of {sent:,} messages after {_LIMIT_S:g} s")
    count = done - before
    return Run(count / (last_s - first_s), 1e6 * used[0] / count, 1e6 * sum(used) / count)


def main() -> None:
    """Print machine, input, each pair and the median ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--client", default="confluent", choices=["kafka-python", "confluent"])
    parser.add_argument("--counters", action="store_true")
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--new-set", action="append", default=[])
    parser.add_argument("--pairs", type=int, default=5)
    given = parser.parse_args()
    what = f"{POSTS:,} posts with {NUMBERS} counters each" if given.counters else "generated posts"
    print(f"{machine_line()}\n{given.client}; input: {given.messages:,} messages of {what}")
    print(f"settings of new: {', '.join(given.new_set) or 'its own'}", flush=True)
    programs = {"old": (given.old, []), "new": (given.new, given.new_set)}
    ratios: dict[str, list[float]] = {name: [] for name in Run._fields}
    for pair in range(1, given.pairs + 1):
        runs = {
            label: measured(*programs[label], given.client, given.messages, counters=given.counters)
            for label in (("old", "new") if pair % 2 else ("new", "old"))
        }
        for name, found in ratios.items():
            found.append(getattr(runs["new"], name) / getattr(runs["old"], name))
        shown = ", ".join(
            f"{label} {run.rate:,.0f}/s index {run.index:.1f} all {run.all:.1f} µs"
            for label, run in sorted(runs.items(), reverse=True)
        )
        now = ", ".join(f"{name} {found[-1]:.2f}" for name, found in ratios.items())
        print(f"pair {pair}: {shown}; new/old {now}", flush=True)
    print("median new/old: " + ", ".join(f"{name} {median(found):.3f}" for name, found in ratios.items()))


if __name__ == "__main__":
    main()
