"""Time to judge a message while the window grows, up to ten million kept messages.

    python -m bench.near_scale [--window 10000000] [--segment 16000000] [--threads 1]

Generated posts flow through scheme and sieve; only `BatchSieve.judge` is timed. Each line is the median of
the batches since the line before it, together with what the window held at its end.
"""

from __future__ import annotations

import argparse
from statistics import median
from time import perf_counter

from bench.machine import machine_line
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.pipeline.tools.generate.stream import generate_columns
from twinsieve.stages.contract import MAX_SEGMENT, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

_STEPS = (30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)


def main() -> None:
    """Prints machine, input and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--window", type=int, default=1_000_000)
    parser.add_argument("--segment", type=int, default=MAX_SEGMENT)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print(machine_line())
    cut = f"window {options.window:,} messages, segments of {options.segment:,}, {options.threads} threads"
    print(f"input: generated posts, seed 1; {cut}")
    print(f"{'kept':>12} {'µs a message':>14} {'dropped':>9} {'B a kept message':>18}")
    scheme = Scheme(SchemeConfig())
    config = SieveConfig(
        ExactConfig(window=Window(options.window)),
        NearConfig(window=Window(options.window), segment=options.segment, threads=options.threads),
    )
    sieve = BatchSieve(config)
    steps = [step for step in _STEPS if step <= options.window]
    micros: list[float] = []
    read = before = 0
    for posts in generate_columns(options.window * 2 + 200_000, seed=1):
        batch = batch_of(*scheme.read(posts.texts))
        start = perf_counter()
        sieve.judge(batch)
        micros.append((perf_counter() - start) / len(batch) * 1e6)
        read += len(batch)
        stats = sieve.stats()
        if stats.kept >= steps[0]:
            dropped = 1 - (stats.kept - before) / read
            held = stats.bytes_used / stats.held
            print(f"{stats.kept:>12,} {median(micros):>14.2f} {dropped:>9.1%} {held:>18.0f}", flush=True)
            micros, read, before = [], 0, stats.kept
            steps.pop(0)
            if not steps:
                break


if __name__ == "__main__":
    main()
