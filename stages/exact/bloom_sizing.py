"""The sizes of the Bloom filters for an exact window, and the proof that they are large enough."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from pybloom_live import BloomFilter

from twinsieve.stages.contract import Window
from twinsieve.stages.errors import UsageError
from twinsieve.stages.exact.window import check_window

GENERATIONS = 8
"""Number of full generations in a window of messages. Up to 1/8 more than the window is remembered."""

AGE_PARTS = 4
"""Number of time spans in a window's age. Up to a quarter more than the age is remembered."""

SMALLEST_ERROR_RATE = 1e-15
MAX_ERROR_RATE = 0.5

_LINE = 64
_MAX_SLICE = 2**32 - 1
_SMALL = 100_000
_LARGEST_CREATED = 1_000_000
_SAME_PLACES = 2.0**-80
"""Probability that two digests have the same places in every filter (`bloom_kernel.bloom_place`)."""


class BloomSizing(NamedTuple):
    """The sizes of the filters.

    capacity: greatest number of keys of one generation
    slices, slice_bits: number of slices of one filter, and bits of each, for `error_rate`
    rows: number of generations for which there is memory; stride: bytes of one generation
    messages, age_ms: the window; span_ms: a generation is closed when its first entry is this old; without
        an age, age_ms and span_ms are -1
    """

    capacity: int
    slices: int
    slice_bits: int
    error_rate: float
    rows: int
    stride: int
    messages: int
    age_ms: int
    span_ms: int


def bloom_sizing(window: Window, error_rate: float, generations: int = GENERATIONS) -> BloomSizing:
    """The sizes with which all generations together keep `error_rate`, and always cover the whole window.

    *Number of rows.* A generation is closed when it holds capacity = ceil(messages / generations) keys, or
    when its first entry is span = ceil(age / 4) old. It is live until its newest entry leaves the window.
    Look at the moment just before a new generation is opened. All entries newer than the newest entry of the
    oldest live generation are inside the window, so they are at most messages - 1. So at most
    (messages - 1) // capacity of the other closed generations are full. The generations closed by time began
    at least one span apart, and not longer ago than the age; so they are at most age // span <= 4. There
    are rows for all of these, plus the oldest generation and the new one. So no entry inside the window is
    ever overwritten. The entries remembered beyond the window are less than one capacity in number, and less
    than one span in time.

    *Error.* The live generations together hold at most capacity + messages - 1 keys. A filter that is filled
    to the share x of its capacity has a false hit with the probability
    (1 - 2 ** -x) ** slices <= x × 2 ** -slices (for two or more slices). So the sum over all filters is
    greatest if the keys fill whole generations. Therefore each filter gets the rate
    error_rate × capacity / (capacity + messages - 1), whatever the number of rows.

    To find its sizes, a pybloom-live filter is created, or for more than a million keys what it would compute
    is computed.

    raises: UsageError for an invalid window or error rate
    """
    check_window(window)
    if not SMALLEST_ERROR_RATE <= error_rate <= MAX_ERROR_RATE:
        raise UsageError(
            f"exact.error_rate is {error_rate!r}; use {SMALLEST_ERROR_RATE}..{MAX_ERROR_RATE}, "
            "or exact.method trie for no errors at all"
        )
    if not 2 <= generations <= 32:
        raise UsageError(f"generations is {generations}; use 2..32")
    capacity = -(-window.messages // generations)
    # A slice has at most capacity / ln 2 bits. Refuse a larger one before pybloom-live allocates memory.
    largest = int(_MAX_SLICE * math.log(2))
    if capacity > largest:
        raise UsageError(
            f"exact.window.messages is {window.messages}; a filter serves at most {largest * generations}"
        )
    same = (capacity + window.messages) * _SAME_PLACES
    if error_rate < same:
        raise UsageError(
            f"exact.error_rate is {error_rate!r}; a window of {window.messages} messages needs {same:.1e} or "
            "more, or exact.method trie for no errors at all"
        )
    share = error_rate * capacity / (capacity + window.messages - 1)
    slices, slice_bits, requested_rate = _filter_within(capacity, share)
    rows = (window.messages - 1) // capacity + 2
    age_ms = span_ms = -1
    if window.age_ms is not None:
        rows += AGE_PARTS
        age_ms, span_ms = window.age_ms, max(1, -(-window.age_ms // AGE_PARTS))
    stride = row_bytes(slices * slice_bits)
    return BloomSizing(
        capacity, slices, slice_bits, requested_rate, rows, stride, window.messages, age_ms, span_ms
    )


def row_bytes(bits: int) -> int:
    """Bytes of a generation's row: an odd number of whole cache lines.

    Because it is odd, the same place in all generations falls into different sets of the processor's cache.
    """
    return (-(-bits // (8 * _LINE)) | 1) * _LINE


@lru_cache(maxsize=64)
def _filter_within(capacity: int, share: float) -> tuple[int, int, float]:
    """(slices, bits of a slice, rate to request) with which a full filter has false hits of at most `share`.

    pybloom-live rounds the number of slices up and makes them smaller, which adds up to 6 % to the error.
    To compensate, a slightly lower rate is requested. It is nearly the same for all capacities, so a small
    filter is used to find it, and a large filter is created only two or three times.
    """
    steps = _steps_within(min(capacity, _SMALL), share, 0)
    if capacity > _SMALL:
        steps = _steps_within(capacity, share, max(0, steps - 1))
    requested_rate = _requested_rate(share, steps)
    return *filter_sizes(capacity, requested_rate), requested_rate


def _steps_within(capacity: int, share: float, steps: int) -> int:
    while True:
        slices, slice_bits = filter_sizes(capacity, _requested_rate(share, steps))
        filled = -math.expm1(capacity * math.log1p(-1.0 / slice_bits))
        if filled**slices <= share:
            return steps
        steps += 1


def _requested_rate(share: float, steps: int) -> float:
    for _ in range(steps):
        share *= 0.995
    return share


def filter_sizes(capacity: int, error_rate: float) -> tuple[int, int]:
    """num_slices and bits_per_slice of a `BloomFilter(capacity, error_rate)` of pybloom-live."""
    if capacity > _LARGEST_CREATED:
        # The filter itself would take the memory of a generation: half a gigabyte for a window of 10^9.
        slices = math.ceil(math.log(1.0 / error_rate, 2))
        return slices, math.ceil(capacity * abs(math.log(error_rate)) / (slices * math.log(2) ** 2))
    bloom = BloomFilter(capacity, error_rate)
    return bloom.num_slices, bloom.bits_per_slice
