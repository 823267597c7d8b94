"""Bloom generations as kernels: test, insert and expire one digest at a time on plain arrays.

Bit order and slices are pybloom-live's: slice i of a filter is its bits from i × bits_per_slice on,
and bit b is bit b % 8 of byte b // 8. The position inside a slice comes from the digest: its two
halves are state and step of a SplitMix64 generator, whose i-th output is scaled to the slice.
So each slice has a position of its own however small the filter is. Double hashing, which walks in
even steps, repeats whole patterns in small filters: with 1,000 keys and 20 slices it errs 500 times
as often as asked (bench/exact_bloom.py).
source: Steele, Lea, Flood 2014 (SplitMix64); Lemire 2019 (scaling without division)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.exact.bloom_sizing import BloomSizing
from twinsieve.stages.intrinsics import mix64, prefetch
from twinsieve.stages.kernel import ZERO, kernel

GENERATION_FIRST_KEPT = 0
GENERATION_NEWEST_KEPT = 1
GENERATION_FIRST_TIME = 2
GENERATION_NEWEST_TIME = 3
GENERATION_COUNT = 4

CURSOR_OLDEST = 0
CURSOR_LIVE = 1


class Bloom(NamedTuple):
    """The filters of all generations.

    bits: uint8[rows × stride], the bit arrays, one row each
    generations: int64[rows, 5], a line a generation: the GENERATION_… columns
    cursor: int64[2], row of the oldest live generation; number of live ones (the last row is before row 0)
    """

    bits: NDArray[np.uint8]
    generations: NDArray[np.int64]
    cursor: NDArray[np.int64]
    sizing: BloomSizing


def new_bloom(sizing: BloomSizing) -> Bloom:
    """Empty filters."""
    return Bloom(
        bits=np.zeros(sizing.rows * sizing.stride, np.uint8),
        generations=np.zeros((sizing.rows, 5), np.int64),
        cursor=np.zeros(2, np.int64),
        sizing=sizing,
    )


def bloom_bytes(sizing: BloomSizing) -> int:
    """Bytes that the arrays of these filters take."""
    return sizing.rows * (sizing.stride + 5 * 8) + 2 * 8


_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_EIGHTH = np.uint64(3)
_IN_BYTE = np.uint64(7)


@kernel
def bloom_place(d0: np.uint64, d1: np.uint64, part: int, slice_bits: int) -> np.int64:
    """The bit of the filter that stands for the digest in slice `part`."""
    # Output `part` of the generator, scaled to a slice by a 64 × 32 bit multiplication.
    word = mix64(d0 + np.uint64(part) * (d1 | _ONE))
    scale = np.uint64(slice_bits)
    inside = ((word >> _HALF) * scale + (((word & _LOW) * scale) >> _HALF)) >> _HALF
    return np.int64(np.int64(part) * slice_bits + np.int64(inside))


@kernel(callee=True)
def _bit(bits: NDArray[np.uint8], start: np.uint64, place: np.uint64) -> np.uint64:
    # Unsigned, as a signed index costs a test for negative ones at every access.
    return (np.uint64(bits[start + (place >> _EIGHTH)]) >> (place & _IN_BYTE)) & _ONE


@kernel
def bloom_prefetch(bloom: Bloom, d0: np.uint64, d1: np.uint64) -> None:
    """Prefetch the lines that decide most tests (two slices of each live generation)."""
    bits, cursor, sizing = bloom.bits, bloom.cursor, bloom.sizing
    first = bloom_place(d0, d1, ZERO, sizing.slice_bits) >> 3
    second = bloom_place(d0, d1, ZERO + 1, sizing.slice_bits) >> 3
    row = cursor[CURSOR_OLDEST]
    for _ in range(cursor[CURSOR_LIVE]):
        start = row * sizing.stride
        prefetch(bits, start + first)
        prefetch(bits, start + second)
        row += 1
        if row == sizing.rows:
            row = 0


@kernel
def bloom_oldest_hit(bloom: Bloom, d0: np.uint64, d1: np.uint64) -> np.int64:
    """The smallest first kept index among the live generations that contain the digest, or -1.

    Where this is not below the oldest kept index of the ring, all hits lie in what the ring still
    holds. Nothing is changed; call `bloom_expire` before.
    """
    bits, cursor, sizing = bloom.bits, bloom.cursor, bloom.sizing
    slices, slice_bits = sizing.slices, sizing.slice_bits
    stride = np.uint64(sizing.stride)
    end = np.uint64(sizing.rows) * stride
    first = np.uint64(bloom_place(d0, d1, ZERO, slice_bits))
    second = np.uint64(bloom_place(d0, d1, min(ZERO + 1, slices - 1), slice_bits))
    third = np.uint64(bloom_place(d0, d1, min(ZERO + 2, slices - 1), slice_bits))
    fourth = np.uint64(bloom_place(d0, d1, min(ZERO + 3, slices - 1), slice_bits))
    # Four tests are made for all generations without a branch: nearly all misses end here, a
    # mispredicted branch costs more than the tests it saves, and cache misses overlap.
    left = np.uint64(0)
    flag = _ONE
    start = np.uint64(cursor[CURSOR_OLDEST]) * stride
    for _ in range(cursor[CURSOR_LIVE]):
        two = _bit(bits, start, first) & _bit(bits, start, second)
        left |= (two & _bit(bits, start, third) & _bit(bits, start, fourth)) * flag
        flag <<= _ONE
        start += stride
        if start == end:
            start = np.uint64(0)
    row = cursor[CURSOR_OLDEST]
    while left != 0:
        if left & _ONE:
            start = np.uint64(row) * stride
            part = ZERO + 4
            while part < slices and _bit(bits, start, np.uint64(bloom_place(d0, d1, part, slice_bits))):
                part += 1
            if part >= slices:
                return np.int64(bloom.generations[row, GENERATION_FIRST_KEPT])
        left >>= _ONE
        row += 1
        if row == sizing.rows:
            row = 0
    return np.int64(-1)


@kernel
def bloom_expire(bloom: Bloom, kept_count: int, stream_time_ms: int) -> None:
    """Mark generations whose newest entry has left the window as dead.

    Times must lie within ±2 ** 62, so that differences fit. One comparison when nothing expires.
    """
    generations, cursor, sizing = bloom.generations, bloom.cursor, bloom.sizing
    while cursor[CURSOR_LIVE] > 0:
        row = cursor[CURSOR_OLDEST]
        passed = kept_count - generations[row, GENERATION_NEWEST_KEPT] > sizing.messages
        if sizing.age_ms >= 0:
            passed |= stream_time_ms - generations[row, GENERATION_NEWEST_TIME] > sizing.age_ms
        if not passed:
            return
        cursor[CURSOR_OLDEST] = 0 if row + 1 == sizing.rows else row + 1
        cursor[CURSOR_LIVE] -= 1


@kernel
def bloom_insert(bloom: Bloom, d0: np.uint64, d1: np.uint64, kept_index: int, time_ms: int) -> None:
    """Insert the digest into the current generation, a new one if that was full or spanned its time.

    kept_index: larger than all before; time_ms: stream time, not below any before. Expires first,
    so a row for the new generation is always free (see BloomGenerations for why). Opening a
    generation clears its row: once in `capacity` insertions or `span` of time, about .1 ms a MB.
    """
    bloom_expire(bloom, kept_index, time_ms)
    bits, generations, cursor, sizing = bloom
    rows = sizing.rows
    live = cursor[CURSOR_LIVE]
    row = (cursor[CURSOR_OLDEST] + live + rows - 1) % rows
    is_open = live > 0 and generations[row, GENERATION_COUNT] < sizing.capacity
    if is_open and sizing.span_ms >= 0:
        is_open = time_ms - generations[row, GENERATION_FIRST_TIME] < sizing.span_ms
    if not is_open:
        row = (cursor[CURSOR_OLDEST] + live) % rows
        bits[row * sizing.stride : (row + 1) * sizing.stride] = 0
        generations[row, GENERATION_FIRST_KEPT] = kept_index
        generations[row, GENERATION_FIRST_TIME] = time_ms
        generations[row, GENERATION_COUNT] = 0
        cursor[CURSOR_LIVE] = live + 1
    start = row * sizing.stride
    for part in range(sizing.slices):
        place = bloom_place(d0, d1, part, sizing.slice_bits)
        bits[start + (place >> 3)] |= np.uint8(1 << (place & 7))
    generations[row, GENERATION_NEWEST_KEPT] = kept_index
    generations[row, GENERATION_NEWEST_TIME] = time_ms
    generations[row, GENERATION_COUNT] += 1


@kernel
def contains_batch(bloom: Bloom, digests: NDArray[np.uint64], hits: NDArray[np.bool_]) -> None:
    """Write to hits[i] whether a live generation contains digests[i]. hits: bool[n]"""
    for i in range(len(digests)):
        hits[i] = bloom_oldest_hit(bloom, digests[i, 0], digests[i, 1]) >= 0


@kernel
def add_batch(
    bloom: Bloom,
    digests: NDArray[np.uint64],
    kept_indices: NDArray[np.int64],
    times_ms: NDArray[np.int64],
) -> None:
    """Insert all rows in order, exactly as `bloom_insert` does one by one."""
    for i in range(len(digests)):
        bloom_insert(bloom, digests[i, 0], digests[i, 1], kept_indices[i], times_ms[i])
