"""What it costs to look at what differs: µs a compared pair, by set.

    python -m bench.differences [--runs 7] [--pairs 20000]

The near pairs of each set (TWINSIEVE_DATA), each as two messages in a scope of its own, are judged at .70
with `near.differences` off and full, in turn. The difference of the medians, by pair that was alike, is
what tokens, alignment and rules cost. One thread; texts are read beforehand.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from dataclasses import replace
from statistics import median
from time import perf_counter

from bench.machine import machine_line
from tests.accuracy.data_sets import POOLED, WEIBO, DataSet
from twinsieve.pipeline.evaluate.evaluate import batch_of, read_texts
from twinsieve.stages.contract import Batch, Differences, Kind, SieveConfig, Window
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.judge.sieve import Sieve
from twinsieve.stages.text.rules import TextConfig


def pairs_of(data: DataSet, most: int) -> Batch:
    """The first near pairs of a set, earlier message first."""
    texts = dict(zip(*read_texts(data.texts), strict=True))
    with gzip.open(data.pairs, "rt", encoding="utf-8") as lines:
        near = [row for row in csv.DictReader(lines, delimiter="\t") if row["kind"] == "near"][:most]
    both = [texts[row[name]] for row in near for name in ("earlier", "later")]
    scheme = Scheme(SchemeConfig(text=TextConfig(profile=data.profile)))
    return batch_of(*scheme.read(both), scopes=[1 + row // 2 for row in range(len(both))])


def timed(batch: Batch, level: str) -> tuple[float, int]:
    """(seconds to judge the pairs, how many were alike enough)"""
    config, window = SieveConfig(scoped=True), Window(len(batch))
    near = replace(
        config.near,
        window=window,
        similarity=7_000,
        differences=Differences(level),
        shards=1,  # type: ignore[arg-type]
    )
    sieve = Sieve(replace(config, exact=replace(config.exact, method="none"), near=near))
    start = perf_counter()
    said = sieve.judge(batch)
    took = perf_counter() - start
    return took, int(((said.kinds == Kind.NEAR) | (said.reasons != 0)).sum())


def main() -> None:
    """Print machine and table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--pairs", type=int, default=20_000)
    given = parser.parse_args()
    print(machine_line())
    for data in (WEIBO, *POOLED):
        batch = pairs_of(data, given.pairs)
        seconds: dict[str, list[float]] = {"off": [], "full": []}
        alike = 0
        for _ in range(given.runs + 1):
            for level, each in seconds.items():
                took, alike = timed(batch, level)
                each.append(took)
        off, full = (median(each[1:]) for each in seconds.values())
        print(
            f"{data.name}: {alike:,} pairs alike, {(full - off) / alike * 1e6:.2f} µs a pair more under full"
        )


if __name__ == "__main__":
    main()
