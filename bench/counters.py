"""Time to judge posts with a counter: each is similar to dozens that a number keeps apart.

    python -m bench.counters [--posts 20000] [--numbers 25] [--messages 1000000] [--threads 1]

The input is made-up: `--posts` generated posts, each with `--numbers` numbers behind it, in any order; half
of the messages repeat one before. Only `BatchSieve.judge` is timed, under the default configuration, and once
more with differences off, where the numbers keep nothing apart. To compare another version, run this file
with that version on PYTHONPATH, from another folder.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from time import perf_counter

from bench.machine import machine_line
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.pipeline.tools.generate.stream import generate_columns
from twinsieve.stages.contract import (
    OFF,
    Batch,
    Differences,
    ExactConfig,
    Kind,
    NearConfig,
    SieveConfig,
    Window,
)
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

POSTS, NUMBERS = 20_000, 25
"""How many posts, and how many numbers each is followed by."""
_BATCH = 4_096
_RUNS = 3
_LEAST_LENGTH = 20


def texts_of(posts: int, numbers: int, messages: int, rng: random.Random) -> Iterator[list[str]]:
    """The texts of the messages, in batches."""
    bases: dict[str, None] = {}
    for columns in generate_columns(posts * 4, seed=3):
        bases |= dict.fromkeys(text for text in columns.texts if len(text) >= _LEAST_LENGTH)
        if len(bases) >= posts:
            break
    pairs = [(base, number) for base in list(bases)[:posts] for number in range(numbers)]
    rng.shuffle(pairs)
    said: list[str] = []
    batch: list[str] = []
    for _ in range(messages):
        if said and (not pairs or rng.random() < 0.5):
            batch.append(rng.choice(said))
        else:
            base, number = pairs.pop()
            said.append(f"{base} {1000 + 7 * number}")
            batch.append(said[-1])
        if len(batch) == _BATCH:
            yield batch
            batch = []


def judged(batches: list[Batch], config: SieveConfig) -> tuple[float, int]:
    """µs a message, and number of messages kept."""
    sieve = BatchSieve(config)
    seconds, kept = 0.0, 0
    for batch in batches:
        began = perf_counter()
        verdicts = sieve.judge(batch)
        seconds += perf_counter() - began
        kept += int((verdicts.kinds == Kind.UNIQUE).sum())
    return 1e6 * seconds / sum(map(len, batches)), kept


def main() -> None:
    """Prints machine, input and the two times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--posts", type=int, default=POSTS)
    parser.add_argument("--numbers", type=int, default=NUMBERS)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print(machine_line())
    print(
        f"input: {options.posts:,} generated posts with {options.numbers} numbers each, half repeats, "
        f"{options.messages:,} messages, {options.threads} threads, median of {_RUNS} runs"
    )
    scheme = Scheme(SchemeConfig())
    texts = texts_of(options.posts, options.numbers, options.messages, random.Random(1))
    batches = [batch_of(*scheme.read(each)) for each in texts]
    near = NearConfig(window=Window(1_000_000), threads=options.threads)
    for name, each in (
        ("as by default", near),
        ("differences off", replace(near, differences=Differences(OFF))),
    ):
        runs = [judged(batches, SieveConfig(ExactConfig(), each)) for _ in range(_RUNS)]
        print(f"{name}: {median(us for us, _ in runs):.2f} µs a message, {runs[0][1]:,} kept", flush=True)


if __name__ == "__main__":
    main()
