"""The trie method at scale: wrong answers, bytes and time a key, longest pause: `python -m bench.exact_trie`.

Prints machine, input and figures for 5,000,000 keys added and asked in chunks of 4,096, once with line
numbers as positions, once with random 64-bit positions (the worst case). Process memory is what the
resident set grew by after the kernels were loaded. Fails if one answer is wrong.
Then the layout of one tier against whole digests in one marisa trie, and what its look-ups cost.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import marisa_trie
import numpy as np
from numpy.typing import NDArray

from bench.machine import best_seconds, machine_line, memory_mib
from twinsieve.stages.contract import Window
from twinsieve.stages.exact.bloom_kernel import contains_batch
from twinsieve.stages.exact.trie import TierSizes, TrieTiers
from twinsieve.stages.exact.trie_head import Entries
from twinsieve.stages.exact.trie_tier import SealedTier

CHUNK = 4_096
ABSENT = 5_000_000
RUNS = 3


def resident_bytes() -> int:
    """Resident set of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    """Largest resident set since the last `reset_peak`."""
    return round(memory_mib("self", "VmHWM") * (1 << 20))


def reset_peak() -> None:
    """Start the peak anew."""
    Path("/proc/self/clear_refs").write_text("5")


def trim() -> None:
    """Give freed memory back to the system, so that it is not counted."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)


def warm_up() -> None:
    """Load every kernel and library, with tiers too small to leave traces in memory."""
    tiers = TrieTiers(Window(1_000), TierSizes(16, 4, 256))
    digests = np.random.default_rng(9).integers(0, 2**64, (600, 2), dtype=np.uint64)
    kept = np.arange(600)
    tiers.add(digests, kept, kept, kept)
    tiers.find(digests)


def run(keys: int, positions_are: str) -> None:
    """Prints the figures of one stream; in a process of its own, for the sake of its memory."""
    rng = np.random.default_rng(0)
    digests = rng.integers(0, 2**64, (keys, 2), dtype=np.uint64)
    kept = np.arange(keys)
    positions = kept if positions_are == "lines" else rng.integers(-(2**63), 2**63 - 1, keys)
    times = np.cumsum(rng.integers(0, 5, keys)) + 1_700_000_000_000
    warm_up()
    trim()
    reset_peak()
    before = resident_bytes()
    tiers = TrieTiers(Window(keys))
    spent = longest = 0.0
    for at in range(0, keys, CHUNK):
        rows = slice(at, at + CHUNK)
        start = time.perf_counter()
        tiers.add(digests[rows], positions[rows], kept[rows], times[rows])
        took = time.perf_counter() - start
        spent += took
        longest = max(longest, took)
    peak = peak_bytes() - before
    held = resident_bytes() - before
    trim()
    trimmed = resident_bytes() - before
    announced = TrieTiers.bytes_for(Window(keys)) / keys
    largest = max(len(tier) for tier in tiers.tiers)
    print(f"{keys:,} keys, positions: {positions_are}; {len(tiers.tiers)} tiers, the largest of {largest:,}")
    print(f"  bytes a key: {tiers.bytes_used / keys:.2f} (announced with merging: {announced:.1f})")
    print(f"  process grew by, bytes a key: {trimmed / keys:.2f}; with freed memory {held / keys:.2f}")
    print(f"  at the peak of merging, bytes a key: {peak / keys:.2f}")
    print(f"  add: {spent / keys * 1e6:.2f} µs a key on average; longest pause {longest:.2f} s")
    wrong, spent = 0, 0.0
    for at in range(0, keys, CHUNK):
        rows = slice(at, at + CHUNK)
        start = time.perf_counter()
        found, leaders, kept_found, times_found = tiers.find(digests[rows])
        spent += time.perf_counter() - start
        right = (
            found & (leaders == positions[rows]) & (kept_found == kept[rows]) & (times_found == times[rows])
        )
        wrong += int(np.count_nonzero(~right))
    print(f"  present: {wrong} wrong of {keys:,}; {spent / keys * 1e6:.2f} µs a key")
    spent, extra = 0.0, 0
    for _ in range(0, ABSENT, CHUNK * 50):
        asked = rng.integers(0, 2**64, (CHUNK * 50, 2), dtype=np.uint64)
        for at in range(0, len(asked), CHUNK):
            start = time.perf_counter()
            found = tiers.find(asked[at : at + CHUNK])[0]
            spent += time.perf_counter() - start
            extra += int(np.count_nonzero(found))
    count = -(-ABSENT // (CHUNK * 50)) * CHUNK * 50
    print(f"  absent: {extra} wrong of {count:,}; {spent / count * 1e6:.2f} µs a key")
    if wrong or extra:
        raise SystemExit("an answer was wrong")


def price_look_ups(keys: int) -> None:
    """Prints what a look-up in one sealed tier costs, and how much of that the calls of marisa-trie take."""
    rng = np.random.default_rng(1)
    digests = rng.integers(0, 2**64, (keys, 2), dtype=np.uint64)
    kept = np.arange(keys)
    tier = SealedTier.of(0, Entries(digests, kept, kept, kept))
    absent = rng.integers(0, 2**64, (keys, 2), dtype=np.uint64)
    passed = np.empty(keys, dtype=np.bool_)
    contains_batch(tier.filter, absent, passed)
    share = passed.mean()
    print(f"look-ups in one tier of {keys:,} keys, chunks of {CHUNK:,}; ns a key, best of {RUNS}")
    for name, asked in (("present", rng.permutation(digests)), ("absent", absent)):
        find = _best_ns(asked, tier.find)
        own_filter = _best_ns(asked, lambda part: contains_batch(tier.filter, part, passed[: len(part)]))
        print(f"  {name}: {find:.0f}, of which the Bloom filter {own_filter:.0f}")
    as_they_come = _best_ns(rng.permutation(digests), tier._ids_of)
    in_order = _best_ns(rng.permutation(digests), lambda part: tier._ids_of(part[np.argsort(part[:, 0])]))
    print(f"  marisa-trie, a key a call: {as_they_come:.0f}, in key order {in_order:.0f} with sorting")
    print(f"  absent keys that get there: {share:.1%}")


def _best_ns(asked: NDArray[np.uint64], call: Callable[[NDArray[np.uint64]], object]) -> float:
    def ask_all() -> None:
        for at in range(0, len(asked), CHUNK):
            call(asked[at : at + CHUNK])

    return best_seconds(ask_all, RUNS) / len(asked) * 1e9


def compare_layouts(keys: int) -> None:
    """Prints what the digests cost in a sealed tier and as whole keys of one trie."""
    digests: NDArray[np.uint64] = np.random.default_rng(1).integers(0, 2**64, (keys, 2), dtype=np.uint64)
    kept = np.arange(keys)
    start = time.perf_counter()
    tier = SealedTier.of(0, Entries(digests, kept, kept, kept))
    tier_us = (time.perf_counter() - start) / keys * 1e6
    tier_bytes = len(tier.trie.tobytes()) + tier.low.nbytes + tier.second.nbytes
    ordered = digests[np.lexsort((digests[:, 1], digests[:, 0]))].astype(">u8")
    whole = np.ascontiguousarray(ordered).view("V16").reshape(-1).tolist()
    start = time.perf_counter()
    trie = marisa_trie.BinaryTrie(whole, num_tries=1, cache_size=marisa_trie.TINY_CACHE)
    trie_us = (time.perf_counter() - start) / keys * 1e6
    print(f"one tier of {keys:,} keys")
    print(f"  digests {tier_bytes / keys:.2f} B a key; sealed with all columns in {tier_us:.2f} µs a key")
    print(
        f"  whole digests in a trie {len(trie.tobytes()) / keys:.2f} B a key; built in {trie_us:.2f} µs a key"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keys", type=int, default=5_000_000)
    parser.add_argument("--only", choices=["lines", "random"], help="one stream in this process")
    parser.add_argument("--look-ups", action="store_true", help="only what look-ups in one tier cost")
    options = parser.parse_args()
    if options.only:
        run(options.keys, options.only)
        return
    print(machine_line())
    if options.look_ups:
        price_look_ups(2**20)
        return
    print("input: uniformly random digests, window = keys, chunks of 4,096")
    for positions_are in ("lines", "random"):
        again = [sys.executable, "-m", "bench.exact_trie", *sys.argv[1:]]
        subprocess.run([*again, "--only", positions_are], check=True)
    compare_layouts(2**20)
    price_look_ups(2**20)


if __name__ == "__main__":
    main()
