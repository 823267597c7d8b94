"""`BloomGenerations`: a Bloom filter of the digests kept inside the exact window, with a fixed error rate.

The window is divided into generations, each with a filter of its own, so that old digests can be removed.
Each filter has the size and the bit layout of a pybloom-live `BloomFilter(capacity, error_rate)`;
`bloom_sizing` creates one to read both. Kernels test and set the bits, because pybloom-live takes 2 µs and
more for each key. All filters stand in one array, one row each. pybloom-live's `digest in filter` on that
memory gives the same answers (tests/stages/exact).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Window
from twinsieve.stages.exact.bloom_kernel import CURSOR_LIVE, GENERATION_FIRST_KEPT, bloom_bytes, new_bloom
from twinsieve.stages.exact.bloom_sizing import AGE_PARTS, GENERATIONS, bloom_sizing
from twinsieve.stages.exact.sections import SectionReader, Sections


class BloomGenerations:
    """Filters of the digests that were kept inside a window, and of up to one generation before it.

    window: number of kept messages, perhaps also an age
    error_rate: probability of a false hit in any generation, 1e-15..0.5
    generations: number of full generations that make up the window in messages, 2..32
    bloom: the arrays, as kernels take them
    All memory is allocated at the start. raises: UsageError
    """

    def __init__(self, window: Window, error_rate: float, generations: int = GENERATIONS) -> None:
        sizing = bloom_sizing(window, error_rate, generations)
        self.error_rate = error_rate
        self.sizing = sizing
        self._generations = generations
        self.bloom = new_bloom(sizing)

    @staticmethod
    def bytes_for(window: Window, error_rate: float, generations: int = GENERATIONS) -> int:
        """Bytes of the arrays of this configuration. raises: UsageError"""
        return bloom_bytes(bloom_sizing(window, error_rate, generations))

    @property
    def bytes_used(self) -> int:
        """Bytes of all arrays; the number never changes."""
        return bloom_bytes(self.sizing)

    def to_sections(self) -> Sections:
        """The state as named arrays: `parameters`, `generations`, and `0.bits` of the oldest live generation,
        and so on.

        Only the bits of the newest generation are a copy. Those of the others do not change until their
        generation leaves the window and a new one takes its memory; after that, `sealed` has another name.
        """
        rows = self._live_rows()
        bits = self.bloom.bits.reshape(self.sizing.rows, -1)
        sections: Sections = {
            "parameters": self._parameters(),
            "generations": self.bloom.generations[rows],
        }
        for number, row in enumerate(rows.tolist()):
            is_newest = number == len(rows) - 1
            sections[f"{number}.bits"] = bits[row].copy() if is_newest else bits[row]
        return sections

    def sealed(self) -> dict[str, str]:
        """By number in `to_sections`, names for the full generations; no other content ever has them."""
        first = self.bloom.generations[self._live_rows(), GENERATION_FIRST_KEPT].tolist()
        return {str(number): f"bloom-{kept}" for number, kept in enumerate(first[:-1])}

    @classmethod
    def from_sections(
        cls,
        sections: Mapping[str, NDArray[np.generic]],
        window: Window,
        error_rate: float,
        generations: int = GENERATIONS,
    ) -> BloomGenerations:
        """The filters from a saved state. raises: StateError if it has other settings or is damaged"""
        loaded = cls(window, error_rate, generations)
        sizing = loaded.sizing
        reader = SectionReader("bloom", sections)
        reader.same_parameters(_PARAMETERS, loaded._parameters())
        columns = reader.array("generations", np.int64, (None, 5)).astype(np.int64)
        live = len(columns)
        if live > sizing.rows:
            raise reader.damaged(f"there are {live} generations where {sizing.rows} are possible")
        if not _are_in_order(columns, sizing.capacity):
            raise reader.damaged("generations are not in order")
        loaded.bloom.generations[:live] = columns
        bits = loaded.bloom.bits.reshape(sizing.rows, -1)
        for number in range(live):
            bits[number] = reader.array(f"{number}.bits", np.uint8, (sizing.stride,))
        loaded.bloom.cursor[CURSOR_LIVE] = live
        return loaded

    def _live_rows(self) -> NDArray[np.int64]:
        oldest, live = self.bloom.cursor.tolist()
        return np.arange(oldest, oldest + live, dtype=np.int64) % self.sizing.rows

    def _parameters(self) -> NDArray[np.int64]:
        rate = int(np.float64(self.error_rate).view(np.int64))
        sizing = self.sizing
        values = [sizing.messages, sizing.age_ms, rate, self._generations, sizing.slices, sizing.slice_bits]
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
