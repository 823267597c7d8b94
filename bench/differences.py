"""What it costs to look at what differs: µs a compared pair, by set and by step.

    python -m bench.differences [--runs 7] [--pairs 20000]

The near pairs of each set (TWINSIEVE_DATA) that are similar to .70 or more. Each step holds those before it:
both bodies are read into tokens, aligned, asked by the guards, and measured (`near.differences: full`). The
sieve reads the tokens of a later message once for all its candidates, so a pair costs less in a run. One
thread; median of the runs.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bench.machine import machine_line
from tests.accuracy.data_sets import POOLED, WEIBO, DataSet
from twinsieve.pipeline.tools.evaluate.evaluate import read_texts
from twinsieve.stages.contract import LEVELS, STORED_LENGTH, Differences
from twinsieve.stages.differ.align import align
from twinsieve.stages.differ.difference import difference
from twinsieve.stages.differ.phrases import Phrases
from twinsieve.stages.differ.tokens import Tokens, tokenize
from twinsieve.stages.differ.word_lists import phrases_of
from twinsieve.stages.differ.workspace import Differing, new_differing
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.text.rules import TextConfig

_STEPS = (("tokens", "off"), ("aligned", "off"), ("guards", "guards"), ("full", "full"))
_TOKENS, _ALIGNED = 0, 1
_LEAST = 0.70


class _Pairs(NamedTuple):
    """Row 2k is the earlier body of pair k, row 2k + 1 the later one."""

    chars: NDArray[np.uint32]
    word_starts: NDArray[np.uint8]
    starts: NDArray[np.int64]


def pairs_of(data: DataSet, most: int) -> _Pairs:
    """The first near pairs of a set that are alike enough."""
    texts = dict(zip(*read_texts(data.texts), strict=True))
    with gzip.open(data.pairs, "rt", encoding="utf-8") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        near = [row for row in rows if row["kind"] == "near" and float(row["similarity"]) >= _LEAST][:most]
    both = [texts[row[name]] for row in near for name in ("earlier", "later")]
    bodies, _ = Scheme(SchemeConfig(text=TextConfig(profile=data.profile))).read(both)
    return _Pairs(bodies.chars, bodies.word_starts, bodies.starts)


@njit(nogil=True, _nrt=False)
def _read(tokens: Tokens, pairs: _Pairs, row: int, phrases: Phrases) -> None:
    start, length = pairs.starts[row], pairs.starts[row + 1] - pairs.starts[row]
    head = min(length, STORED_LENGTH)
    for j in range(head):
        tokens.chars[j] = pairs.chars[start + j]
    for j in range(head):
        tokens.word_starts[j] = pairs.word_starts[start + j]
    tokenize(tokens, head, length > head, phrases)


@njit(nogil=True, _nrt=False)
def _look(pairs: _Pairs, phrases: Phrases, limits: Differences, work: Differing, step: int) -> int:
    """Take every pair as far as the step; how many runs they differ in, or are kept apart."""
    found = 0
    for pair in range((len(pairs.starts) - 1) // 2):
        _read(work.earlier, pairs, 2 * pair, phrases)
        _read(work.later, pairs, 2 * pair + 1, phrases)
        if step == _ALIGNED:
            align(work.later, work.earlier, work.alignment)
            found += work.alignment.count[0]
        elif step > _ALIGNED:
            reason, _ = difference(phrases, limits, work)
            found += reason != 0
    return found


def main() -> None:
    """Print machine and table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--pairs", type=int, default=20_000)
    given = parser.parse_args()
    print(machine_line())
    phrases, work = phrases_of(), new_differing()
    print(f"{'set':<10}{'pairs':>8}{'runs a pair':>13}" + "".join(f"{name:>10}" for name, _ in _STEPS))
    for data in (WEIBO, *POOLED):
        pairs = pairs_of(data, given.pairs)
        count = (len(pairs.starts) - 1) // 2
        costs, found = [], []
        for step, (_, level) in enumerate(_STEPS):
            limits, took = Differences(LEVELS.index(level)), []
            for _ in range(given.runs + 1):
                start = perf_counter()
                said = _look(pairs, phrases, limits, work, step)
                took.append(perf_counter() - start)
            costs.append(median(took[1:]) / count * 1e6)
            found.append(said)
        print(
            f"{data.name:<10}{count:>8,}{found[_ALIGNED] / count:>13.2f}"
            + "".join(f"{cost:>10.2f}" for cost in costs)
        )


if __name__ == "__main__":
    main()
