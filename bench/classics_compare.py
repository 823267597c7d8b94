"""A million comparisons of two fingerprints, and of two texts.

    python -m bench.classics_compare [--count 1000000]

Published (S1, Java): 100 ms for a million fingerprints, 4,266 ms for a million Levenshtein distances.
"""

from __future__ import annotations

import argparse

import numpy as np
from rapidfuzz.distance import Levenshtein

from bench.classics_data import PAIR, markdown
from bench.machine import best_seconds, machine_line
from twinsieve.stages.near.bits import count_close

PUBLISHED_MS = {"fingerprints": "100", "texts": "4,266"}


def main() -> None:
    """Print machine, input and the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    count = parser.parse_args().count
    stored = np.random.default_rng(1).integers(0, 2**64, count, dtype=np.uint64)
    query = np.uint64(0x0123_4567_89AB_CDEF)

    def loop() -> None:
        distance = Levenshtein.distance
        first, second = PAIR
        for _ in range(count):
            distance(first, second)

    numpy_ms = best_seconds(lambda: np.bitwise_count(stored ^ query), runs=15) * 1e3
    scan_ms = best_seconds(lambda: count_close(stored, query, np.uint64(3)), runs=15) * 1e3
    texts_ms = best_seconds(loop, runs=3) * 1e3
    print(machine_line())
    print(f"input: {count:,} random fingerprints against one; the pair {count:,} times")
    rows = [
        [
            f"{count:,} comparisons of fingerprints, NumPy `bitwise_count(a ^ b)`",
            PUBLISHED_MS["fingerprints"],
            numpy_ms,
        ],
        [
            f"{count:,} comparisons of fingerprints, as each scan of twinsieve makes them",
            PUBLISHED_MS["fingerprints"],
            scan_ms,
        ],
        [
            f"{count:,} Levenshtein distances of the pair, rapidfuzz in a loop",
            PUBLISHED_MS["texts"],
            texts_ms,
        ],
    ]
    print(markdown(["what", "published, ms", "here, ms"], [[*row[:2], f"{row[2]:,.2f}"] for row in rows]))


if __name__ == "__main__":
    main()
