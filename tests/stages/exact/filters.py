"""The Bloom generations, asked and filled in whole batches, and as filters of pybloom-live."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pybloom_live import BloomFilter

from twinsieve.stages.exact.bloom import BloomGenerations
from twinsieve.stages.exact.bloom_kernel import (
    Bloom,
    add_batch,
    bloom_insert,
    bloom_oldest_hit,
    bloom_place,
    contains_batch,
    find_places,
)


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


def insert(bloom: Bloom, key: NDArray[np.uint64], kept_index: int, time_ms: int) -> None:
    """Insert one digest. key: uint64[2]"""
    find_places(bloom, key[0], key[1], 0)
    bloom_insert(bloom, 0, kept_index, time_ms)


def oldest_hit(bloom: Bloom, key: NDArray[np.uint64]) -> int:
    """As `bloom_oldest_hit`, of one digest. key: uint64[2]"""
    find_places(bloom, key[0], key[1], 0)
    return int(bloom_oldest_hit(bloom, 0))


def filters_on(seen: BloomGenerations) -> tuple[BloomFilter, ...]:
    """A pybloom-live filter for each row, with the row as its bit array; its keys are digests as pairs.

    Its count is of keys added through it, never of the kernels'.
    """
    sizing = seen.sizing

    # A key is asked of one filter after another, and has the same places in all of them.
    @lru_cache(maxsize=1)
    def places(key: tuple[int, int]) -> list[int]:
        d0, d1 = map(np.uint64, key)
        width = sizing.slice_bits
        return [int(bloom_place(d0, d1, part, width)) - part * width for part in range(sizing.slices)]

    filters = []
    for row in seen.bloom.bits.reshape(sizing.rows, -1):
        made = BloomFilter(sizing.capacity, sizing.error_rate)
        # Both are public attributes: one stands for memory, the other for hash functions.
        bits = row[: -(-made.num_bits // 8)].data
        made.bitarray = type(made.bitarray)(buffer=bits, endian="little")
        made.make_hashes = places
        filters.append(made)
    return tuple(filters)
