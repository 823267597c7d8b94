"""Look-ups and candidates of each search, counted and as `lint --at` predicts them, and what they take.

python -m bench.classics_searches [--rows 100000 1000000]

Counted by plain NumPy on random fingerprints, for a sample of queries: how many kept fingerprints have the
same bits as the query in a table's key. Then the same on fingerprints of generated posts, where blocks agree
more often: the factor to the prediction. Times are those of the sieve (`near.candidates`) and of `find_all`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.machine import machine_line
from twinsieve.api.fingerprints import find_all
from twinsieve.pipeline.tools.generate.stream import generate_columns
from twinsieve.stages.contract import (
    NO_TIME,
    BandLayout,
    Batch,
    Bodies,
    ExactConfig,
    Fingerprints,
    NearConfig,
    SieveConfig,
    Verdicts,
    Window,
)
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.near.hamming import block_edges, table_masks
from twinsieve.stages.pairs.cost import Cost, costs
from twinsieve.stages.pairs.variants import flips_of

K = 3
BLOCKS = (4, 5)
"""Layouts of tables: as published, and the default of the sieve."""
QUERIES = 50_000
POSTS = 100_000
POSTED_QUERIES = 20_000
TIMED = 2_048


def main() -> None:
    """Print the machine, the counts beside the predictions, and the times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    rows = parser.parse_args().rows
    print(machine_line())
    random = np.random.default_rng(1)
    for kept in rows:
        print(f"\n{kept:,} random fingerprints kept, k {K}: a query, counted beside predicted")
        stored = random.integers(0, 2**64, kept, dtype=np.uint64)
        queries = random.integers(0, 2**64, QUERIES, dtype=np.uint64)
        _print_counts(stored, queries)
    texts = [text for columns in generate_columns(POSTS) for text in columns.texts]
    _, prints = Scheme(SchemeConfig()).read(texts)
    found = np.unique(prints.simhashes[prints.has_simhash, 0])
    random.shuffle(found)
    stored, queries = found[POSTED_QUERIES:], found[:POSTED_QUERIES]
    print(f"\n{len(stored):,} fingerprints of generated posts: candidates, counted ÷ predicted")
    for name, masks, cost in _schemes(len(stored)):
        if masks is not None:
            print(f"  {name:<24}{_candidates(stored, queries, masks) / cost.candidates:8.1f} times")
    print(f"\nthe sieve, random fingerprints, k {K}, one thread: µs that the search takes for a message")
    for kept in rows:
        _print_times(random.integers(0, 2**64, kept + TIMED, dtype=np.uint64), kept)
    _print_find_all(random.integers(0, 2**64, 20_000, dtype=np.uint64))


def _schemes(kept: int) -> Iterator[tuple[str, NDArray[np.uint64] | None, Cost]]:
    """Name, masks of its keys (None: no key), and predicted cost of each scheme."""
    for blocks in BLOCKS:
        masks = table_masks(blocks, K)
        yield f"tables, {blocks} blocks", masks, costs(kept, K, masks)["tables"]
    predicted = costs(kept, K, None)
    edges = block_edges(K + 1)
    parts = [(1 << high) - (1 << low) for low, high in pairwise(edges)]
    yield f"sorted, {K + 1} blocks", np.array(parts, np.uint64), predicted["sorted"]
    for name in ("enumerate", "expand", "scan"):
        yield name, None, predicted[name]


def _candidates(stored: NDArray[np.uint64], queries: NDArray[np.uint64], masks: NDArray[np.uint64]) -> float:
    """Stored fingerprints with the key of a query, summed over all tables, a query."""
    count = 0
    for mask in masks:
        keys = np.sort(stored & mask)
        wanted = queries & mask
        count += int((np.searchsorted(keys, wanted, "right") - np.searchsorted(keys, wanted, "left")).sum())
    return count / len(queries)


def _print_counts(stored: NDArray[np.uint64], queries: NDArray[np.uint64]) -> None:
    values = np.sort(stored)
    for name, masks, cost in _schemes(len(stored)):
        if masks is not None:
            lookups, candidates = float(len(masks)), _candidates(stored, queries, masks)
        elif name == "scan":
            lookups, candidates = 0.0, float(np.count_nonzero(stored == stored))
        else:
            few = queries[:50]
            flipped = (few[:, None] ^ flips_of(K)).ravel()
            at = np.minimum(np.searchsorted(values, flipped), len(values) - 1)
            candidates = float(np.count_nonzero(values[at] == flipped)) / len(few)
            lookups = len(flipped) / len(few) if name == "enumerate" else 1.0
        off = f"{candidates / cost.candidates - 1:+.1%}" if candidates else ""
        print(
            f"  {name:<24}look-ups {lookups:>10,.0f} ({cost.lookups:,.0f})   candidates {candidates:>14,.4g} "
            f"({cost.candidates:,.4g}) {off}   {cost.bytes:,.0f} bytes a kept message"
        )


def batch_of(prints: NDArray[np.uint64]) -> Batch:
    """Messages with these fingerprints, and bodies that play no part."""
    n, layout = len(prints), BandLayout()
    lengths = np.full(n, 8, np.int32)
    starts = np.arange(n + 1, dtype=np.int64) * 8
    bodies = Bodies(
        np.zeros(8 * n, np.uint32), starts, np.zeros(8 * n, np.uint8), lengths, lengths, np.zeros(n, np.bool_)
    )
    dims = {"tables": layout.tables, "weak": layout.weak, "bands": layout.bands}
    fingerprints = Fingerprints.blank(n, dims=dims)
    fingerprints.digests[:] = np.random.default_rng(2).integers(0, 2**64, (n, 2), dtype=np.uint64)
    fingerprints.simhashes[:, 0] = prints
    fingerprints.has_simhash[:] = True
    batch = Batch.blank(n)
    batch.positions[:] = np.arange(n)
    batch.times_ms[:] = NO_TIME
    batch.bodies, batch.fingerprints = bodies, fingerprints
    return batch


def _microseconds(prints: NDArray[np.uint64], kept: int, **near: Any) -> float:
    """Time to judge a message, when `kept` are kept; the least of several slices."""
    config = SieveConfig(ExactConfig("none"), NearConfig(window=Window(kept + len(prints)), **near))
    sieve = BatchSieve(config)
    batch = batch_of(prints)
    # Applied as unique, so that filling takes no search.
    first = batch.slice(0, kept)
    sieve.apply(first, Verdicts.blank(kept))
    times = []
    for low in range(kept, len(prints), 256):
        part = batch.slice(low, min(low + 256, len(prints)))
        # The time of this thread alone: what else runs on the machine counts less.
        start = time.thread_time()
        sieve.judge(part)
        times.append((time.thread_time() - start) / len(part))
    return min(times) * 1e6


def _print_times(prints: NDArray[np.uint64], kept: int) -> None:
    other = _microseconds(prints, kept, method="none")
    spent = {}
    for blocks in BLOCKS:
        spent[f"tables, {blocks} blocks"] = _microseconds(
            prints, kept, method="hamming", distances=((8, K),), blocks=blocks
        )
    spent["scan"] = _microseconds(prints, kept, method="hamming", distances=((8, K),), candidates="scan")
    print(f"  {kept:,} kept: " + ", ".join(f"{name} {each - other:.2f}" for name, each in spent.items()))
    four, five = (costs(kept, K, table_masks(blocks, K))["tables"] for blocks in BLOCKS)
    # Two layouts, two unknowns: what a look-up takes, and what a candidate does.
    system = np.array([[four.lookups, four.candidates], [five.lookups, five.candidates]])
    taken = np.array([spent[f"tables, {blocks} blocks"] - other for blocks in BLOCKS]) * 1000
    lookup, candidate = np.linalg.solve(system, taken)
    comparison = (spent["scan"] - other) * 1000 / kept
    print(f"    ns a comparison {comparison:.2f}, a look-up {lookup:.0f}, a candidate {candidate:.0f}")


def _print_find_all(prints: NDArray[np.uint64]) -> None:
    print(f"\nfind_all, {len(prints):,} random fingerprints: µs a row")
    for search, k in (
        ("tables", 3),
        ("sorted", 3),
        ("scan", 3),
        ("scan", 12),
        ("expand", 1),
        ("enumerate", 2),
    ):
        find_all(prints[:2], k, search=search)
        start = time.thread_time()
        find_all(prints, k, search=search)
        print(f"  {search:<10} k {k:<3}{(time.thread_time() - start) / len(prints) * 1e6:10.2f}")


if __name__ == "__main__":
    main()
