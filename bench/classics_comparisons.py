"""A million comparisons of 64-bit fingerprints, beside NumPy, and a million of two texts.

    python -m bench.classics_comparisons

One fingerprint is compared with a million: how many differ from it in at most 3 bits? `near/hamming.py`
answers that for every scan. NumPy's `bitwise_count(a ^ b)` computes only the million distances, and does not
count them. The two take turns in one run, because the machine may do other work; the ratio is of the medians.
Published (S1, Java, one thread): 100 ms for a million fingerprints, 4,266 ms for a million Levenshtein
distances.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
from rapidfuzz.distance import Levenshtein

from bench.classics_data import PAIR, markdown
from bench.machine import best_seconds, machine_line
from twinsieve.stages.near.hamming import count_close

ROWS = 1_000_000
RUNS = 201
DISTANCE = np.uint64(3)
FINGERPRINTS_MS, TEXTS_MS = "100", "4,266"
MOST = 0.70
"""The greatest ratio to NumPy that counts as fast."""


def milliseconds(calls: dict[str, Callable[[], object]], runs: int = RUNS) -> dict[str, float]:
    """Median time of each call. The calls take turns, so that noise falls on all of them."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(runs):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - start) * 1000)
    return {name: median(each) for name, each in times.items()}


def levenshtein_of_the_pair() -> None:
    """A million times."""
    distance = Levenshtein.distance
    first, second = PAIR
    for _ in range(ROWS):
        distance(first, second)


def main() -> None:
    """Print the machine, the table and the ratio."""
    random = np.random.default_rng(1)
    stored = random.integers(0, 2**64, ROWS, dtype=np.uint64)
    others = random.integers(0, 2**64, ROWS, dtype=np.uint64)
    one = others[0]
    stored[:: ROWS // 20] = one ^ np.uint64(0b101)
    expected = int(np.count_nonzero(np.bitwise_count(stored ^ one) <= DISTANCE))
    assert count_close(stored, one, DISTANCE) == expected
    found = milliseconds(
        {
            "numpy": lambda: np.bitwise_count(stored ^ one),
            "numpy, pairs": lambda: np.bitwise_count(stored ^ others),
            "count_close": lambda: count_close(stored, one, DISTANCE),
        }
    )
    texts_ms = best_seconds(levenshtein_of_the_pair, runs=3) * 1e3
    what = f"{ROWS:,} comparisons of fingerprints"
    rows = [
        [f"{what}, NumPy `bitwise_count(a ^ b)`, b one fingerprint", FINGERPRINTS_MS, found["numpy"]],
        [f"{what}, NumPy, b a million fingerprints", FINGERPRINTS_MS, found["numpy, pairs"]],
        [f"{what}, as each scan of twinsieve makes them", FINGERPRINTS_MS, found["count_close"]],
        [f"{ROWS:,} Levenshtein distances of the pair, rapidfuzz in a loop", TEXTS_MS, texts_ms],
    ]
    print(machine_line())
    print(f"input: {ROWS:,} random fingerprints against one, median of {RUNS} runs in turns; the pair of S1")
    print(markdown(["what", "published, ms", "here, ms"], [[*row[:2], f"{row[2]:,.2f}"] for row in rows]))
    print(
        f"ratio to NumPy with one fingerprint: {found['count_close'] / found['numpy']:.2f} (at most {MOST})"
    )


if __name__ == "__main__":
    main()
