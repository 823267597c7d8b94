"""Kernels of the Bloom filters: test, insert and expire one digest at a time, on plain arrays.

A filter has the bit order and the slices of pybloom-live: slice i begins at bit i × bits_per_slice, and bit b
is bit b % 8 of byte b // 8. A digest has one bit in each slice. The first half of the digest is the state of
a SplitMix64 generator, and the 16 highest bits of the second half choose its step; its i-th output, scaled to
the length of a slice, is the bit in slice i. So the bits of a digest are independent of each other, even in a
small filter, and 80 bits of a digest are enough to set them again (`key_notes`). Double hashing is not used,
because its equal steps repeat whole patterns in small filters: with 1,000 keys and 20 slices, false hits are
500 times as frequent as requested (bench/exact_bloom.py).
source: Steele, Lea, Flood 2014 (SplitMix64); Lemire 2019 (scaling without division)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.exact.bloom_sizing import BloomSizing
from twinsieve.stages.intrinsics import GOLDEN, mix64, prefetch
from twinsieve.stages.kernel import ZERO, kernel

GENERATION_FIRST_KEPT = 0
GENERATION_NEWEST_KEPT = 1
GENERATION_FIRST_TIME = 2
GENERATION_NEWEST_TIME = 3
GENERATION_COUNT = 4

CURSOR_OLDEST = 0
CURSOR_LIVE = 1

PLACE_LINES = 16
"""Digests whose places are remembered at once, from their prefetching to their insertion; a power of two."""


class Bloom(NamedTuple):
    """The filters of all generations. A generation is live until its newest entry leaves the window.

    bits: uint8[rows × stride], the bits of the filters, one row for each generation
    generations: int64[rows, 5], one row for each generation, with the GENERATION_… columns
    cursor: int64[2], row of the oldest live generation, and number of live generations. They stand in
        consecutive rows; row 0 follows after the last row
    places: uint64[PLACE_LINES, slices], scratch: the bits of digests inside a filter, by `find_places`
    """

    bits: NDArray[np.uint8]
    generations: NDArray[np.int64]
    cursor: NDArray[np.int64]
    sizing: BloomSizing
    places: NDArray[np.uint64]


def new_bloom(sizing: BloomSizing) -> Bloom:
    """Empty filters."""
    return Bloom(
        bits=np.zeros(sizing.rows * sizing.stride, np.uint8),
        generations=np.zeros((sizing.rows, 5), np.int64),
        cursor=np.zeros(2, np.int64),
        sizing=sizing,
        places=np.zeros((PLACE_LINES, sizing.slices), np.uint64),
    )


def bloom_bytes(sizing: BloomSizing) -> int:
    """Bytes of the arrays of these filters."""
    return sizing.rows * (sizing.stride + 5 * 8) + 2 * 8


STEP_SHIFT = np.uint64(48)
"""The bits of a digest's second half from this one on choose the step."""

_TESTED = 4
"""Slices that `bloom_oldest_hit` tests without a branch."""

_AHEAD = 8
"""Keys whose cache lines are prefetched before the first of them is read; less than PLACE_LINES."""

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_EIGHTH = np.uint64(3)
_IN_BYTE = np.uint64(7)


@kernel
def bloom_place(d0: np.uint64, d1: np.uint64, part: int, slice_bits: int) -> np.int64:
    """Number of the bit that the digest (d0, d1) has in slice `part` of a filter."""
    # Output number `part` of the generator, scaled to a slice by a multiplication of 64 by 32 bits.
    word = mix64(d0 + np.uint64(part) * (((d1 >> STEP_SHIFT) * GOLDEN) | _ONE))
    scale = np.uint64(slice_bits)
    inside = ((word >> _HALF) * scale + (((word & _LOW) * scale) >> _HALF)) >> _HALF
    return np.int64(np.int64(part) * slice_bits + np.int64(inside))


@kernel(callee=True)
def _bit(bits: NDArray[np.uint8], start: np.uint64, place: np.uint64) -> np.uint64:
    # The index is unsigned: for a signed index, each access would also test whether it is negative.
    return (np.uint64(bits[start + (place >> _EIGHTH)]) >> (place & _IN_BYTE)) & _ONE


@kernel(inlined=True)
def find_places(bloom: Bloom, d0: np.uint64, d1: np.uint64, line: int) -> None:
    """Write the places of the digest (d0, d1) to this line of `places`, for the kernels below."""
    places, slices, slice_bits = bloom.places, bloom.sizing.slices, bloom.sizing.slice_bits
    for part in range(slices):
        places[line, part] = np.uint64(bloom_place(d0, d1, part, slice_bits))


@kernel(callee=True, inlined=True)
def _set_bits(bloom: Bloom, row: int, line: int) -> None:
    """Set the bits of the digest of this line in the filter of this row."""
    bits, places, sizing = bloom.bits, bloom.places, bloom.sizing
    start = np.uint64(row * sizing.stride)
    for part in range(sizing.slices):
        place = places[line, part]
        bits[start + (place >> _EIGHTH)] |= np.uint8(_ONE << (place & _IN_BYTE))


@kernel
def bloom_fill(bloom: Bloom, row: int, states: NDArray[np.uint64], steps: NDArray[np.uint16]) -> None:
    """Set the bits of noted keys (`key_notes`) in the filter of this row. states, steps: [n]"""
    bits, places, sizing = bloom.bits, bloom.places, bloom.sizing
    start = np.uint64(row * sizing.stride)
    for ahead in range(len(states) + _AHEAD):
        if ahead < len(states):
            line = ahead & (PLACE_LINES - 1)
            find_places(bloom, states[ahead], np.uint64(steps[ahead]) << STEP_SHIFT, line)
            for part in range(sizing.slices):
                prefetch(bits, start + (places[line, part] >> _EIGHTH))
        if ahead >= _AHEAD:
            _set_bits(bloom, row, (ahead - _AHEAD) & (PLACE_LINES - 1))


@kernel(inlined=True)
def bloom_prefetch(bloom: Bloom, line: int) -> None:
    """Prefetch what `bloom_oldest_hit` and `bloom_insert` will read for the digest of this line: of each live
    generation the cache lines of the first four slices, and of the newest one those of all, because most
    digests are inserted.

    It is only a hint. Without it, an insertion into a filter of 5 MB took 600 ns.
    """
    bits, places, cursor, sizing = bloom.bits, bloom.places, bloom.cursor, bloom.sizing
    newest = cursor[CURSOR_LIVE] - 1
    if newest < 0:
        return
    row = cursor[CURSOR_OLDEST]
    for _ in range(newest):
        start = np.uint64(row * sizing.stride)
        for part in range(min(_TESTED, sizing.slices)):
            prefetch(bits, start + (places[line, part] >> _EIGHTH))
        row += 1
        if row == sizing.rows:
            row = 0
    start = np.uint64(row * sizing.stride)
    for part in range(sizing.slices):
        prefetch(bits, start + (places[line, part] >> _EIGHTH))


@kernel(inlined=True)
def bloom_oldest_hit(bloom: Bloom, line: int) -> np.int64:
    """First kept index of the oldest live generation that contains the digest of this line, or -1.

    If it is not less than the oldest kept index in the ring, the ring still holds all messages of the
    generations with a hit. Call `bloom_expire` first. It changes nothing.
    """
    bits, places, cursor, sizing = bloom.bits, bloom.places, bloom.cursor, bloom.sizing
    slices = sizing.slices
    stride = np.uint64(sizing.stride)
    end = np.uint64(sizing.rows) * stride
    first = places[line, 0]
    second = places[line, min(ZERO + 1, slices - 1)]
    third = places[line, min(ZERO + 2, slices - 1)]
    fourth = places[line, min(ZERO + 3, slices - 1)]
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
            part = ZERO + _TESTED
            while part < slices and _bit(bits, start, places[line, part]):
                part += 1
            if part >= slices:
                return np.int64(bloom.generations[row, GENERATION_FIRST_KEPT])
        left >>= _ONE
        row += 1
        if row == sizing.rows:
            row = 0
    return np.int64(-1)


@kernel(inlined=True)
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


@kernel(inlined=True)
def bloom_insert(bloom: Bloom, line: int, kept_index: int, time_ms: int) -> None:
    """Insert the digest of this line into the newest generation; into a new one if that is full or its time
    span is over.

    kept_index: greater than all before; time_ms: stream time, not less than any before
    It expires generations first, so a row is always free for a new one (`bloom_sizing` has the proof). To
    open a generation clears its row, in about .1 ms a MB; this happens once in `capacity` insertions or
    `span_ms`.
    """
    bloom_expire(bloom, kept_index, time_ms)
    bits, generations, cursor, sizing = bloom.bits, bloom.generations, bloom.cursor, bloom.sizing
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
    _set_bits(bloom, row, line)
    generations[row, GENERATION_NEWEST_KEPT] = kept_index
    generations[row, GENERATION_NEWEST_TIME] = time_ms
    generations[row, GENERATION_COUNT] += 1


@kernel
def contains_batch(bloom: Bloom, digests: NDArray[np.uint64], hits: NDArray[np.bool_]) -> None:
    """Write to hits[i] whether a live generation contains digests[i]. hits: bool[n]"""
    for ahead in range(len(digests) + _AHEAD):
        if ahead < len(digests):
            line = ahead & (PLACE_LINES - 1)
            find_places(bloom, digests[ahead, 0], digests[ahead, 1], line)
            bloom_prefetch(bloom, line)
        if ahead >= _AHEAD:
            i = ahead - _AHEAD
            hits[i] = bloom_oldest_hit(bloom, i & (PLACE_LINES - 1)) >= 0


@kernel
def add_batch(
    bloom: Bloom,
    digests: NDArray[np.uint64],
    kept_indices: NDArray[np.int64],
    times_ms: NDArray[np.int64],
) -> None:
    """Insert all digests in order, as `bloom_insert` does for each."""
    for i in range(len(digests)):
        find_places(bloom, digests[i, 0], digests[i, 1], ZERO)
        bloom_insert(bloom, ZERO, kept_indices[i], times_ms[i])
