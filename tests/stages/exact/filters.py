"""The Bloom generations, asked and filled in whole batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.exact.bloom import BloomGenerations
from twinsieve.stages.exact.bloom_kernel import add_batch, contains_batch


def contains(seen: BloomGenerations, digests: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool[n], whether a live generation holds digests[i]. digests: uint64[n, 2]"""
    found = np.empty(len(digests), dtype=np.bool_)
    contains_batch(seen.bloom, digests, found)
    return found


def add(
    seen: BloomGenerations,
    digests: NDArray[np.uint64],
    first_kept_index: int = 0,
    times_ms: NDArray[np.int64] | None = None,
) -> None:
    """Hold row i as kept index first_kept_index + i. times_ms: int64[n], not decreasing; default: 0"""
    kept = np.arange(first_kept_index, first_kept_index + len(digests), dtype=np.int64)
    add_batch(seen.bloom, digests, kept, np.zeros_like(kept) if times_ms is None else times_ms)
