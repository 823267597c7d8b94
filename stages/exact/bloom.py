"""`BloomGenerations`: which digests were kept inside the exact window, at a stated error rate.

pybloom-live sizes the filters and owns their bit arrays; kernels test and set bits on the same memory,
so `digest in filter` on any of `filters` gives the kernels' answer.

>>> seen = BloomGenerations(Window(messages=1_000), error_rate=1e-6)
>>> digests = np.arange(20, dtype=np.uint64).reshape(10, 2)
>>> seen.add(digests[:5], first_kept_index=0, times_ms=np.zeros(5, dtype=np.int64))
>>> seen.contains(digests).tolist()
[True, True, True, True, True, False, False, False, False, False]
>>> (0, 1) in seen.filters[0]
True
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from bitarray import bitarray
from numpy.typing import NDArray
from pybloom_live import BloomFilter

from stages.contract import Window
from stages.errors import StateError, UsageError
from stages.exact import bloom_kernel as kernel
from stages.exact.window import check_window

GENERATIONS = 8
"""Full generations a window of messages is divided into: up to 1/8 more than the window is remembered."""

AGE_PARTS = 4
"""Parts an age is divided into: up to a quarter more than the age is remembered."""

SMALLEST_ERROR_RATE = 1e-15
LARGEST_ERROR_RATE = 0.5

_LINE = 64
_LARGEST_SLICE = 2**32 - 1


class BloomArrays(NamedTuple):
    """What the kernels of `bloom_kernel` take first, in their order; see there for the columns."""

    bits: NDArray[np.uint8]
    generations: NDArray[np.int64]
    cursor: NDArray[np.int64]
    shape: NDArray[np.int64]


class BloomSizing(NamedTuple):
    """How large the filters are.

    capacity: keys of one generation; slices, slice_bits: of one filter
    rows: generations there is memory for; stride: bytes of one
    span_ms: a generation is closed once its first entry is this old; -1 without an age
    """

    capacity: int
    slices: int
    slice_bits: int
    error_rate: float
    rows: int
    stride: int
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

    raises: UsageError for a window or an error rate that cannot be
    """
    check_window(window)
    if not SMALLEST_ERROR_RATE <= error_rate <= LARGEST_ERROR_RATE:
        raise UsageError(
            f"exact.error_rate is {error_rate!r}; use {SMALLEST_ERROR_RATE}..{LARGEST_ERROR_RATE}, "
            "or exact.method trie for no errors at all"
        )
    if not 2 <= generations <= 32:
        raise UsageError(f"generations is {generations}; use 2..32")
    capacity = -(-window.messages // generations)
    share = error_rate * capacity / (capacity + window.messages - 1)
    slices, slice_bits, asked = _filter_within(capacity, share)
    if slice_bits > _LARGEST_SLICE:
        raise UsageError(
            f"exact.window.messages is {window.messages}; a filter serves at most "
            f"{int(_LARGEST_SLICE * math.log(2)) * generations}"
        )
    rows = (window.messages - 1) // capacity + 2
    span_ms = -1
    if window.age_ms is not None:
        rows += AGE_PARTS
        span_ms = max(1, -(-window.age_ms // AGE_PARTS))
    lines = -(-slices * slice_bits // (8 * _LINE))
    # An odd number of lines: equal places of all generations fall into different sets of the cache.
    return BloomSizing(capacity, slices, slice_bits, asked, rows, (lines | 1) * _LINE, span_ms)


def _filter_within(capacity: int, share: float) -> tuple[int, int, float]:
    """Slices, bits of a slice and the rate to ask of pybloom-live so that a full filter errs at most `share`.

    It rounds slices up and shrinks them accordingly, which costs up to 6 % of error; asking for
    slightly less makes up for that.
    """
    asked = share
    while True:
        slices, slice_bits = _pybloom_sizing(capacity, asked)
        filled = -math.expm1(capacity * math.log1p(-1.0 / slice_bits))
        if filled**slices <= share:
            return slices, slice_bits, asked
        asked *= 0.995


def _pybloom_sizing(capacity: int, error_rate: float) -> tuple[int, int]:
    """num_slices and bits_per_slice of `BloomFilter(capacity, error_rate)`, without allocating it."""
    slices = math.ceil(math.log(1.0 / error_rate, 2))
    slice_bits = math.ceil((capacity * abs(math.log(error_rate))) / (slices * (math.log(2) ** 2)))
    return slices, slice_bits


class BloomGenerations:
    """The digests of kept messages inside a window, and up to one generation beyond it.

    window: N kept messages and/or an age; error_rate: of all generations together, 1e-15..0.5
    generations: full ones that a window of messages makes, 2..32
    filters: a pybloom-live BloomFilter per row; their keys are digests as pairs of ints
    Memory is fixed from the start. raises: UsageError
    """

    arrays: BloomArrays
    filters: tuple[BloomFilter, ...]

    def __init__(self, window: Window, error_rate: float, generations: int = GENERATIONS) -> None:
        sizing = bloom_sizing(window, error_rate, generations)
        self.window = window
        self.error_rate = error_rate
        self.sizing = sizing
        self._generations = generations
        age_ms = -1 if window.age_ms is None else window.age_ms
        shape = np.array(
            [
                sizing.rows,
                sizing.stride,
                sizing.slices,
                sizing.slice_bits,
                sizing.capacity,
                window.messages,
                age_ms,
                sizing.span_ms,
            ],
            dtype=np.int64,
        )
        rows = np.zeros((sizing.rows, sizing.stride), dtype=np.uint8)
        self.arrays = BloomArrays(
            bits=rows.reshape(-1),
            generations=np.zeros((sizing.rows, 5), dtype=np.int64),
            cursor=np.zeros(2, dtype=np.int64),
            shape=shape,
        )
        self.filters = tuple(self._filter_on(row) for row in rows)

    def _filter_on(self, row: NDArray[np.uint8]) -> BloomFilter:
        sizing = self.sizing
        shape = self.arrays.shape

        def make_hashes(key: tuple[int, int]) -> Iterator[int]:
            d0, d1 = np.uint64(key[0]), np.uint64(key[1])
            for part in range(sizing.slices):
                yield int(kernel.bloom_position(shape, d0, d1, part))

        # As its own fromfile does: set the sizes, then put the bit array in place.
        bloom = BloomFilter(1, sizing.error_rate)
        bloom._setup(sizing.error_rate, sizing.slices, sizing.slice_bits, sizing.capacity, 0)
        bloom.bitarray = bitarray(buffer=row[: -(-bloom.num_bits // 8)].data, endian="little")
        bloom.make_hashes = make_hashes
        return bloom

    @staticmethod
    def bytes_for(window: Window, error_rate: float, generations: int = GENERATIONS) -> int:
        """Bytes the arrays of this configuration take; nothing is allocated. raises: UsageError"""
        sizing = bloom_sizing(window, error_rate, generations)
        return sizing.rows * (sizing.stride + 5 * 8) + 2 * 8 + 8 * 8

    @property
    def bytes_used(self) -> int:
        """Bytes of all arrays, constant over time."""
        return sum(array.nbytes for array in self.arrays)

    def contains(self, digests: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """bool[n], whether a live generation holds digests[i]. digests: uint64[n, 2]"""
        found = np.empty(len(digests), dtype=np.bool_)
        kernel.contains_batch(*self.arrays, digests, found)
        return found

    def add(self, digests: NDArray[np.uint64], first_kept_index: int, times_ms: NDArray[np.int64]) -> None:
        """Nothing; row i is held as kept index first_kept_index + i.

        digests: uint64[n, 2]; times_ms: int64[n], stream times, not decreasing
        """
        kept = np.arange(first_kept_index, first_kept_index + len(digests), dtype=np.int64)
        kernel.add_batch(*self.arrays, digests, kept, times_ms)

    def expire(self, kept_count: int, stream_time_ms: int) -> None:
        """Nothing; generations whose newest entry has left the window answer no more."""
        kernel.bloom_expire(*self.arrays[1:], kept_count, stream_time_ms)

    def to_sections(self) -> dict[str, NDArray[np.generic]]:
        """The state as named arrays, copies: `parameters`; of live generations `generations` and `bits`."""
        rows = self._live_rows()
        return {
            "parameters": self._parameters(),
            "generations": self.arrays.generations[rows],
            "bits": self.arrays.bits.reshape(self.sizing.rows, -1)[rows],
        }

    @classmethod
    def from_sections(
        cls,
        sections: dict[str, NDArray[np.generic]],
        window: Window,
        error_rate: float,
        generations: int = GENERATIONS,
    ) -> BloomGenerations:
        """The filters as they were saved. raises: StateError if saved with other settings, or damaged"""
        loaded = cls(window, error_rate, generations)
        saved = _section(sections, "parameters", np.dtype(np.int64), (len(_PARAMETERS),))
        for name, was, is_now in zip(_PARAMETERS, saved.tolist(), loaded._parameters().tolist(), strict=True):
            if was != is_now:
                raise StateError(
                    f"bloom: saved with {_said(name, was)}, the configuration says {_said(name, is_now)}; "
                    "restore the setting or start with an empty state"
                )
        columns = np.asarray(sections.get("generations"))
        live = len(columns) if columns.ndim == 2 else 0
        if live > loaded.sizing.rows:
            raise _damaged(f"{live} generations where {loaded.sizing.rows} are possible")
        columns = _section(sections, "generations", np.dtype(np.int64), (live, 5))
        bits = _section(sections, "bits", np.dtype(np.uint8), (live, loaded.sizing.stride))
        _check_generations(columns, loaded.sizing.capacity)
        loaded.arrays.generations[:live] = columns
        loaded.arrays.bits.reshape(loaded.sizing.rows, -1)[:live] = bits
        loaded.arrays.cursor[kernel.CURSOR_LIVE] = live
        return loaded

    def _live_rows(self) -> NDArray[np.int64]:
        oldest, live = self.arrays.cursor.tolist()
        return np.arange(oldest, oldest + live, dtype=np.int64) % self.sizing.rows

    def _parameters(self) -> NDArray[np.int64]:
        age_ms = -1 if self.window.age_ms is None else self.window.age_ms
        rate = int(np.float64(self.error_rate).view(np.int64))
        sizing = self.sizing
        values = [self.window.messages, age_ms, rate, self._generations, sizing.slices, sizing.slice_bits]
        return np.array([*values, sizing.rows, AGE_PARTS], dtype=np.int64)


_PARAMETERS = (
    "exact.window.messages",
    "exact.window.age_ms",
    "exact.error_rate",
    "generations",
    "slices",
    "bits of a slice",
    "rows",
    "parts of an age",
)


def _said(name: str, value: int) -> str:
    if name == "exact.error_rate":
        return f"{name} {float(np.int64(value).view(np.float64))!r}"
    if name == "exact.window.age_ms" and value < 0:
        return f"{name} none"
    return f"{name} {value}"


def _damaged(what: str) -> StateError:
    return StateError(f"bloom: {what}; the state is damaged, start with an empty one or an older snapshot")


def _section(
    sections: dict[str, NDArray[np.generic]], name: str, dtype: np.dtype[np.generic], shape: tuple[int, ...]
) -> NDArray[np.generic]:
    if name not in sections:
        raise _damaged(f"section {name!r} is missing")
    array = sections[name]
    if array.dtype != dtype or array.shape != shape:
        raise _damaged(f"section {name!r} is {array.dtype}{array.shape}, expected {dtype}{shape}")
    return array


def _check_generations(columns: NDArray[np.generic], capacity: int) -> None:
    first_kept, newest_kept, first_time, newest_time, count = columns.astype(np.int64).T
    ordered = (
        (first_kept >= 0).all()
        and (first_kept <= newest_kept).all()
        and (newest_kept[:-1] < first_kept[1:]).all()
        and (first_time <= newest_time).all()
        and (newest_time[:-1] <= first_time[1:]).all()
        and (count >= 1).all()
        and (count <= capacity).all()
    )
    if not ordered:
        raise _damaged("generations are not in order")
