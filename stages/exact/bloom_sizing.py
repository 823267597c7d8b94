"""How large the filters of an exact window are, and why that is enough."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from pybloom_live import BloomFilter

from twinsieve.stages.contract import Window
from twinsieve.stages.errors import UsageError
from twinsieve.stages.exact.window import check_window

GENERATIONS = 8
"""Full generations a window of messages is divided into: up to 1/8 more than the window is remembered."""

AGE_PARTS = 4
"""Parts an age is divided into: up to a quarter more than the age is remembered."""

SMALLEST_ERROR_RATE = 1e-15
MAX_ERROR_RATE = 0.5

_LINE = 64
_MAX_SLICE = 2**32 - 1
_SMALL = 100_000


class BloomSizing(NamedTuple):
    """How large the filters are.

    capacity: keys of one generation; slices, slice_bits: of one filter, made for `error_rate`
    rows: generations there is memory for; stride: bytes of one
    messages, age_ms: the window; span_ms: a generation is closed once its first entry is this old
        (-1 and -1 without an age)
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
    """The sizes that keep `error_rate` over all generations together, with the window always covered.

    *Rows.* A generation is closed when it holds capacity = ceil(messages / generations) keys, or when
    its first entry is span = ceil(age / 4) old; it is dead when its newest entry has left the window.
    Just before a new one is opened, all entries newer than the newest of the oldest live generation
    are inside the window: at most messages - 1. So of the other closed ones at most
    (messages - 1) // capacity are full. Those closed by time began at least a span apart and not
    longer than the age ago: at most age // span <= 4. Rows for all of these, the oldest and the new one
    mean that nothing inside the window is ever overwritten. What is remembered beyond it is less than
    one capacity by messages and one span by time.

    *Error.* Live generations hold at most capacity + messages - 1 keys together. A filter that is
    filled to the share x of its capacity errs with (1 - 2 ** -x) ** slices <= x × 2 ** -slices (for two
    or more slices), so the sum is largest when the keys fill whole generations: each gets
    error_rate × capacity / (capacity + messages - 1), whatever the number of rows.

    pybloom-live makes a filter to tell its sizes: for a moment one generation's memory is taken, a tenth or
    less of what the window needs.

    raises: UsageError for a window or an error rate that cannot be
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
    # No slice is larger than capacity / ln 2 bits: refused before pybloom-live asks for memory.
    largest = int(_MAX_SLICE * math.log(2))
    if capacity > largest:
        raise UsageError(
            f"exact.window.messages is {window.messages}; a filter serves at most {largest * generations}"
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
    """Bytes of a generation's row: whole cache lines, an odd number of them.

    So equal places of all generations fall into different sets of the cache.
    """
    return (-(-bits // (8 * _LINE)) | 1) * _LINE


@lru_cache(maxsize=64)
def _filter_within(capacity: int, share: float) -> tuple[int, int, float]:
    """Slices, bits of a slice and the rate to ask of pybloom-live so that a full filter errs at most `share`.

    It rounds slices up and shrinks them accordingly, which costs up to 6 % of error; asking for
    slightly less makes up for that. The rate is nearly the same for every capacity, so a small filter
    finds it, and a large one is made two or three times only.
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
    """num_slices and bits_per_slice of `BloomFilter(capacity, error_rate)`, as its attributes are."""
    bloom = BloomFilter(capacity, error_rate)
    return bloom.num_slices, bloom.bits_per_slice
