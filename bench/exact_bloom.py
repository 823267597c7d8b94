"""Bloom generations: time a key and error rate at their fullest: `python -m bench.exact_bloom [--probes N]`.

Prints machine, then for each window and asked rate: bytes a key, ns to insert, to test an absent and a
present key (one thread, whole batches, best of several runs), and wrong answers per asked one with
the standard error of the count. No answer may be wrong for keys inside the window: it fails if one is.
Then, for the choice of positions: how often filters with double hashing err against ours.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from bench.machine import best_seconds, machine_line
from tests.stages.exact.filters import add, contains
from twinsieve.stages.contract import Window
from twinsieve.stages.exact.bloom import BloomGenerations

WEEK_MS = 7 * 86_400_000
CASES = [
    (Window(100_000), 1e-2),
    (Window(100_000), 1e-3),
    (Window(1_000_000), 1e-2),
    (Window(1_000_000), 1e-3),
    (Window(1_000_000, WEEK_MS), 1e-6),
    (Window(10_000_000, WEEK_MS), 1e-6),
]
PIECE = 2_000_000
RUNS = 3


def random_digests(count: int, seed: int) -> NDArray[np.uint64]:
    """uint64[count, 2], uniform."""
    return np.random.default_rng(seed).integers(0, 2**64, (count, 2), dtype=np.uint64)


def load_kernels() -> None:
    """Compile the kernels, or load them from an earlier process."""
    seen = BloomGenerations(Window(10), 0.1)
    add(seen, random_digests(5, seed=0))
    contains(seen, random_digests(5, seed=0))


def measure(window: Window, error_rate: float, probes: int) -> None:
    """Prints one row of the table."""
    seen = BloomGenerations(window, error_rate)
    capacity = seen.sizing.capacity
    count = window.messages - 1 + capacity
    keys = random_digests(count, seed=1)
    start = time.perf_counter()
    add(seen, keys)
    insert_ns = (time.perf_counter() - start) / count * 1e9
    if not contains(seen, keys[-window.messages :]).all():
        raise SystemExit("a key inside the window was missed")
    absent = random_digests(PIECE, seed=2)
    present = np.random.default_rng(3).permutation(keys)[:PIECE]
    absent_ns = best_seconds(lambda: contains(seen, absent), RUNS) / len(absent) * 1e9
    present_ns = best_seconds(lambda: contains(seen, present), RUNS) / len(present) * 1e9
    wrong = 0
    pieces = -(-probes // PIECE)
    for piece in range(pieces):
        wrong += int(np.count_nonzero(contains(seen, random_digests(PIECE, seed=100 + piece))))
    expected = error_rate * pieces * PIECE
    age = "none" if window.age_ms is None else f"{window.age_ms // 86_400_000} d"
    print(
        f"{window.messages:>11,} {age:>5} {error_rate:>8.0e} {seen.bytes_used / window.messages:>7.2f} "
        f"{insert_ns:>7.0f} {absent_ns:>7.0f} {present_ns:>8.0f} "
        f"{pieces * PIECE:>12,} {wrong:>8,} {wrong / expected:>7.3f} ± {max(wrong, 1) ** 0.5 / expected:.3f}"
    )


def double_hashing_error(keys: int, slices: int, probes: int) -> float:
    """Wrong answers of one filter at capacity whose i-th position is (a + i × b) mod slice."""
    slice_bits = int(np.ceil(keys / np.log(2)))
    rng = np.random.default_rng(4)
    first, step = rng.integers(0, slice_bits, (2, keys))
    bits = np.zeros((slices, slice_bits), dtype=np.bool_)
    for part in range(slices):
        bits[part, (first + part * step) % slice_bits] = True
    first, step = rng.integers(0, slice_bits, (2, probes))
    left = np.arange(probes)
    for part in range(slices):
        left = left[bits[part, (first[left] + part * step[left]) % slice_bits]]
    return len(left) / probes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--probes", type=int, default=100_000_000, help="absent keys per row at 1e-6")
    probes = parser.parse_args().probes
    print(machine_line())
    print("input: uniformly random digests; window + 1/8 kept, so that all generations are full and alive")
    print(
        f"{'window':>11} {'age':>5} {'asked':>8} {'B/key':>7} {'insert':>7} {'absent':>7} {'present':>8} "
        f"{'probes':>12} {'wrong':>8} {'measured / asked':>15}"
    )
    load_kernels()
    measure(Window(1_000), 1e-2, PIECE)
    for window, error_rate in CASES:
        measure(window, error_rate, probes if error_rate < 1e-4 else min(probes, 20_000_000))
    for keys in (100, 1_000, 10_000, 100_000):
        ratio = double_hashing_error(keys, slices=20, probes=4_000_000) * 2**20
        print(f"double hashing, {keys:,} keys, 20 slices: {ratio:,.0f} × the rate of independent positions")


if __name__ == "__main__":
    main()
