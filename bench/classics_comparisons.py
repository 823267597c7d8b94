"""A million comparisons of 64-bit fingerprints, beside NumPy and the published 100 ms.

python -m bench.classics_comparisons

One fingerprint is compared with a million: how many differ from it in at most 3 bits? `stages/near/bits.py`
answers that for every scan. NumPy's `bitwise_count(a ^ b)` makes the million distances alone, and has not yet
counted; the ratio is against that, measured in turns in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from bench.machine import machine_line
from twinsieve.stages.near.bits import count_close

ROWS = 1_000_000
RUNS = 201
DISTANCE = np.uint64(3)
PUBLISHED_MS = 100.0
"""A million comparisons in Java on one thread, as the text on SimHash with k 3 tells."""


def milliseconds(calls: dict[str, Callable[[], object]], runs: int = RUNS) -> dict[str, float]:
    """Median time of each call. The calls take turns, so that noise falls on all of them."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(runs):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - start) * 1000)
    return {name: median(each) for name, each in times.items()}


def main() -> None:
    """Print the machine, the medians and their ratio."""
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
    print(machine_line())
    print(f"{ROWS:,} comparisons of 64 bits, median of {RUNS} runs in turns:")
    print(f"  numpy bitwise_count(a ^ b), b one fingerprint   {found['numpy']:8.3f} ms")
    print(f"  numpy bitwise_count(a ^ b), b a million         {found['numpy, pairs']:8.3f} ms")
    print(f"  count_close (every scan uses it)                {found['count_close']:8.3f} ms")
    print(f"  published                                       {PUBLISHED_MS:8.3f} ms")
    ratio = found["count_close"] / found["numpy"]
    print(f"ratio to numpy with one fingerprint: {ratio:.2f} (at most .70)")


if __name__ == "__main__":
    main()
