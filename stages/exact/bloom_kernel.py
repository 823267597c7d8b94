"""Kernels of the Bloom filters: test, insert and expire one digest at a time, on plain arrays.

A filter has the bit order and the slices of pybloom-live: slice i begins at bit i × bits_per_slice, and bit b
is bit b % 8 of byte b // 8. A digest has one bit in each slice. The halves of the digest are state and step
of a SplitMix64 generator; its i-th output, scaled to the length of a slice, is the bit in slice i. So the
bits of a digest are independent of each other, even in a small filter. Double hashing is not used, because
its equal steps repeat whole patterns in small filters: with 1,000 keys and 20 slices, false hits are 500
times as frequent as requested (bench/exact_bloom.py).
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
    """The filters of all generations. A generation is live until its newest entry leaves the window.

    bits: uint8[rows × stride], the bits of the filters, one row for each generation
    generations: int64[rows, 5], one row for each generation, with the GENERATION_… columns
    cursor: int64[2], row of the oldest live generation, and number of live generations. They stand in
        consecutive rows; row 0 follows after the last row
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
    """Bytes of the arrays of these filters."""
    return sizing.rows * (sizing.stride + 5 * 8) + 2 * 8


_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_EIGHTH = np.uint64(3)
_IN_BYTE = np.uint64(7)


@kernel
def bloom_place(d0: np.uint64, d1: np.uint64, part: int, slice_bits: int) -> np.int64:
    """Number of the bit that the digest (d0, d1) has in slice `part` of a filter."""
    # Output number `part` of the generator, scaled to a slice by a multiplication of 64 by 32 bits.
    word = mix64(d0 + np.uint64(part) * (d1 | _ONE))
    scale = np.uint64(slice_bits)
    inside = ((word >> _HALF) * scale + (((word & _LOW) * scale) >> _HALF)) >> _HALF
    return np.int64(np.int64(part) * slice_bits + np.int64(inside))


@kernel(callee=True)
def _bit(bits: NDArray[np.uint8], start: np.uint64, place: np.uint64) -> np.uint64:
    # The index is unsigned: for a signed index, each access would also test whether it is negative.
    return (np.uint64(bits[start + (place >> _EIGHTH)]) >> (place & _IN_BYTE)) & _ONE


@kernel
def bloom_prefetch(bloom: Bloom, d0: np.uint64, d1: np.uint64) -> None:
    """Prefetch the cache lines of the first two slices of each live generation, which decide most tests."""
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
    """First kept index of the oldest live generation that contains the digest, or -1.

    If it is not less than the oldest kept index in the ring, the ring still holds all messages of the
    generations with a hit. Call `bloom_expire` first. It changes nothing.
    """
    bits, cursor, sizing = bloom.bits, bloom.cursor, bloom.sizing
    slices, slice_bits = sizing.slices, sizing.slice_bits
    stride = np.uint64(sizing.stride)
    end = np.uint64(sizing.rows) * stride
    first = np.uint64(bloom_place(d0, d1, ZERO, slice_bits))
    second = np.uint64(bloom_place(d0, d1, min(ZERO + 1, slices - 1), slice_bits))
    third = np.uint64(bloom_place(d0, d1, min(ZERO + 2, slices - 1), slice_bits))
    fourth = np.uint64(bloom_place(d0, d1, min(ZERO + 3, slices - 1), slice_bits))
    # Test four slices of all generations without a branch. Nearly all digests without a hit end here. A
    # mispredicted branch costs more than the tests it would save, and without branches cache misses overlap.
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
    """Remove the generations whose newest entry has left the window from the live ones.

    Times must lie within ±2 ** 62, so that their differences fit 64 bits. If nothing expires, it costs only
    the comparison with the oldest generation.
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
    """Insert the digest into the newest generation. If that is full or its time span is over, open a new one.

    kept_index: greater than all before; time_ms: stream time, not less than any before
    It expires generations first, so a row is always free for a new one (`bloom_sizing` has the proof). To
    open a generation clears its row, in about .1 ms a MB; this happens once in `capacity` insertions or
    `span_ms`.
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
    """Insert all digests in order, as `bloom_insert` does for each."""
    for i in range(len(digests)):
        bloom_insert(bloom, digests[i, 0], digests[i, 1], kept_indices[i], times_ms[i])
