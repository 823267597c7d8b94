"""How many verdicts differ between sizes of the near window, where none of them forgets anything.

    python -m bench.window_sizes [--rows 250000] [--windows 200000 10000000]

The number of buckets of the candidate index follows from the window, so another size lets other candidates
share a bucket. Sets: generated posts, and every `*_dev.jsonl.gz` of the folder that TWINSIEVE_DATA names.
Each line compares one size with the default: rows that only one of the two keeps, and rows that both drop
for different kept rows. A window that is smaller than the kept rows forgets some; such a line says so.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator

import numpy as np
import orjson

from bench.machine import machine_line
from tests.accuracy.data_sets import named_dir
from twinsieve import Sieve, Verdicts
from twinsieve.pipeline.tools.generate.stream import generate

_DEFAULT = 1_000_000


def sets(rows: int) -> Iterator[tuple[str, list[str]]]:
    """Name and texts of each set."""
    yield "generated posts, seed 1", [post["text"] for post in generate(rows, seed=1)]
    folder = named_dir()
    for path in sorted(folder.glob("*_dev.jsonl.gz")) if folder is not None else ():
        with gzip.open(path) as lines:
            yield path.name.removesuffix("_dev.jsonl.gz"), [orjson.loads(line)["text"] for line in lines]


def main() -> None:
    """Prints machine, input and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=250_000)
    parser.add_argument("--windows", type=int, nargs="+", default=[200_000, 10_000_000])
    options = parser.parse_args()
    print(machine_line())
    print(f"input: sets of TWINSIEVE_DATA and {options.rows:,} generated posts; default settings")
    print(f"compared with the default window of {_DEFAULT:,}")
    counts = f"{'rows':>8} {'kept':>8} {'window':>11} {'kept':>8}"
    print(f"{'set':24} {counts} {'only one keeps':>15} {'other leader':>13}")
    for name, texts in sets(options.rows):
        by_default = Sieve(window=_DEFAULT).judge(texts)
        for window in options.windows:
            verdicts = Sieve(window=window).judge(texts)
            print(_line(name, by_default, window, verdicts), flush=True)


def _line(name: str, first: Verdicts, window: int, other: Verdicts) -> str:
    kept = int(other.kept.sum())
    differs = int(np.count_nonzero(first.kept != other.kept))
    both = ~first.kept & ~other.kept
    leaders = int(np.count_nonzero(first.leader[both] != other.leader[both]))
    share = f"{differs} ({differs / len(first):.4%})"
    forgets = "  forgets the oldest" if kept > window else ""
    counts = f"{len(first):>8,} {int(first.kept.sum()):>8,} {window:>11,} {kept:>8,}"
    return f"{name:24} {counts} {share:>15} {leaders:>13}{forgets}"


if __name__ == "__main__":
    main()
