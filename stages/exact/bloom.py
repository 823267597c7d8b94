"""`BloomGenerations`: which digests were kept inside the exact window, at a stated error rate.

Each generation is a pybloom-live `BloomFilter(capacity, error_rate)`: it gives the sizes, and its bit array
is the memory that the kernels test and set, a row of one block for all generations. So `digest in filter`
gives the kernels' answer. The sieve itself asks the kernels alone: pybloom-live takes 2 µs and more a key.

>>> seen = BloomGenerations(Window(messages=1_000), error_rate=1e-6)
>>> digests = np.arange(20, dtype=np.uint64).reshape(10, 2)
>>> seen.add(digests[:5], first_kept_index=0, times_ms=np.zeros(5, dtype=np.int64))
>>> seen.contains(digests).tolist()
[True, True, True, True, True, False, False, False, False, False]
>>> (0, 1) in seen.filters[0]
True
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pybloom_live import BloomFilter

from twinsieve.stages.contract import Window
from twinsieve.stages.exact import bloom_kernel
from twinsieve.stages.exact.bloom_filter import filter_on
from twinsieve.stages.exact.bloom_sizing import AGE_PARTS, GENERATIONS, BloomArrays, bloom_sizing
from twinsieve.stages.exact.sections import SectionReader, Sections


class BloomGenerations:
    """The digests of kept messages inside a window, and up to one generation beyond it.

    window: N kept messages and/or an age; error_rate: of all generations together, 1e-15..0.5
    generations: full ones that a window of messages makes, 2..32
    filters: a pybloom-live BloomFilter per row; their keys are digests as pairs of ints. Their count is of
        keys added through them, never of the kernels'
    Memory is fixed from the start. raises: UsageError
    """

    arrays: BloomArrays

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
        self.arrays = BloomArrays(
            bits=np.zeros(sizing.rows * sizing.stride, dtype=np.uint8),
            generations=np.zeros((sizing.rows, 5), dtype=np.int64),
            cursor=np.zeros(2, dtype=np.int64),
            shape=shape,
        )

    @cached_property
    def filters(self) -> tuple[BloomFilter, ...]:
        """A pybloom-live BloomFilter per row, made when they are asked for."""
        sizing, arrays = self.sizing, self.arrays
        rows = arrays.bits.reshape(sizing.rows, -1)
        return tuple(
            filter_on(BloomFilter(sizing.capacity, sizing.error_rate), row, arrays.shape) for row in rows
        )

    @staticmethod
    def bytes_for(window: Window, error_rate: float, generations: int = GENERATIONS) -> int:
        """Bytes the arrays of this configuration take. raises: UsageError"""
        sizing = bloom_sizing(window, error_rate, generations)
        return sizing.rows * (sizing.stride + 5 * 8) + 2 * 8 + 8 * 8

    @property
    def bytes_used(self) -> int:
        """Bytes of all arrays, constant over time."""
        return sum(array.nbytes for array in self.arrays)

    def contains(self, digests: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """bool[n], whether a live generation holds digests[i]. digests: uint64[n, 2]"""
        found = np.empty(len(digests), dtype=np.bool_)
        bloom_kernel.contains_batch(*self.arrays, digests, found)
        return found

    def add(self, digests: NDArray[np.uint64], first_kept_index: int, times_ms: NDArray[np.int64]) -> None:
        """Hold row i as kept index first_kept_index + i.

        digests: uint64[n, 2]; times_ms: int64[n], stream times, not decreasing
        """
        kept = np.arange(first_kept_index, first_kept_index + len(digests), dtype=np.int64)
        bloom_kernel.add_batch(*self.arrays, digests, kept, times_ms)

    def expire(self, kept_count: int, stream_time_ms: int) -> None:
        """Let generations whose newest entry has left the window answer no more."""
        bloom_kernel.bloom_expire(*self.arrays[1:], kept_count, stream_time_ms)

    def to_sections(self) -> Sections:
        """The state as named arrays, copies: `parameters`; of live generations `generations` and `bits`."""
        rows = self._live_rows()
        return {
            "parameters": self._parameters(),
            "generations": self.arrays.generations[rows],
            "bits": self.arrays.bits.reshape(self.sizing.rows, -1)[rows],
        }

    @classmethod
    def from_sections(
        cls, sections: Sections, window: Window, error_rate: float, generations: int = GENERATIONS
    ) -> BloomGenerations:
        """The filters as they were saved. raises: StateError if saved with other settings, or damaged"""
        loaded = cls(window, error_rate, generations)
        sizing = loaded.sizing
        reader = SectionReader("bloom", sections)
        reader.same_parameters(_PARAMETERS, loaded._parameters())
        columns = reader.array("generations", np.int64, (None, 5)).astype(np.int64)
        live = len(columns)
        if live > sizing.rows:
            raise reader.damaged(f"there are {live} generations where {sizing.rows} are possible")
        bits = reader.array("bits", np.uint8, (live, sizing.stride))
        if not _are_in_order(columns, sizing.capacity):
            raise reader.damaged("generations are not in order")
        loaded.arrays.generations[:live] = columns
        loaded.arrays.bits.reshape(sizing.rows, -1)[:live] = bits
        loaded.arrays.cursor[bloom_kernel.CURSOR_LIVE] = live
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


def _are_in_order(columns: NDArray[np.int64], capacity: int) -> bool:
    first_kept, newest_kept, first_time, newest_time, count = columns.T
    return bool(
        (first_kept >= 0).all()
        and (first_kept <= newest_kept).all()
        and (newest_kept[:-1] < first_kept[1:]).all()
        and (first_time <= newest_time).all()
        and (newest_time[:-1] <= first_time[1:]).all()
        and (count >= 1).all()
        and (count <= capacity).all()
    )
