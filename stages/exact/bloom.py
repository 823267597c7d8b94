"""`BloomGenerations`: a Bloom filter of the digests kept inside the exact window, with a fixed error rate.

The window is divided into generations, each with a filter of its own, so that old digests can be removed.
Each filter has the size and the bit layout of a pybloom-live `BloomFilter(capacity, error_rate)`;
`bloom_sizing` creates one to read both. Kernels test and set the bits, because pybloom-live takes 2 µs and
more for each key. All filters stand in one array, one row each. pybloom-live's `digest in filter` on that
memory gives the same answers (tests/stages/exact).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Window
from twinsieve.stages.errors import StateError
from twinsieve.stages.exact.bloom_kernel import (
    CURSOR_LIVE,
    GENERATION_FIRST_KEPT,
    GENERATION_NEWEST_KEPT,
    bloom_bytes,
    bloom_fill,
    new_bloom,
)
from twinsieve.stages.exact.bloom_sizing import AGE_PARTS, GENERATIONS, BloomSizing, bloom_sizing
from twinsieve.stages.exact.key_notes import KEYS, NOTE_BYTES, KeyNotes, read_keys
from twinsieve.stages.exact.runs import FrozenPart, FrozenStage, Run, covering, gone, runs_in
from twinsieve.stages.exact.sections import SectionReader, Sections
from twinsieve.stages.memory_pages import assign

NO_BASE = -1
_LEAST_NOTED = 1 << 16


def notes_limit(sizing: BloomSizing) -> int:
    """Most keys that are noted between two saves: a twentieth of the filters in bytes, 65,536 at least."""
    return max(_LEAST_NOTED, bloom_bytes(sizing) // 20 // NOTE_BYTES)


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
        self._notes = KeyNotes(notes_limit(sizing))

    @staticmethod
    def bytes_for(window: Window, error_rate: float, generations: int = GENERATIONS) -> int:
        """Bytes of the arrays of this configuration. raises: UsageError"""
        return bloom_bytes(bloom_sizing(window, error_rate, generations))

    @property
    def bytes_used(self) -> int:
        """Bytes of all arrays; the number never changes."""
        return bloom_bytes(self.sizing)

    @property
    def newest_kept(self) -> int:
        """Kept index of the newest message; -1 without one."""
        rows = self._live_rows()
        return int(self.bloom.generations[rows[-1], GENERATION_NEWEST_KEPT]) if len(rows) else -1

    def assign(self) -> None:
        """Have the system assign the memory of the first generation now, if it is not there yet."""
        if not len(self._live_rows()):
            assign(self._bits_of(0))

    def note(self, first: int, digests: NDArray[np.uint64]) -> None:
        """Note inserted digests for the next `freeze`, which otherwise copies the newest generation.

        first: kept index of the first one, the others follow without a gap; digests: uint64[n, 2]
        """
        self._notes.note(first, digests)

    def freeze(self, have: Collection[str] = ()) -> FrozenStage:
        """The state as it is now. Parts are the full generations, and what the newest one consists of: its
        bits at an earlier moment, or none, and the keys since then.

        have: names of parts that were written. With noted keys only what is not in them is new; else the bits
        of the newest generation are copied
        """
        rows = self._live_rows()
        generations = self.bloom.generations[rows]
        parts: dict[str, FrozenPart] = {}
        for number, (row, first) in enumerate(zip(rows.tolist(), generations[:, 0].tolist(), strict=True)):
            if number < len(rows) - 1:
                parts[str(number)] = FrozenPart(f"bloom-{first}", partial(self._full_bits, row, first))
        sections: Sections = {"parameters": self._parameters(), "generations": generations}
        if len(rows):
            newest, in_files = generations[-1, :2].tolist(), frozenset(have)
            base, runs = self._newest(newest[0], newest[1] + 1, in_files)
            sections["base"] = np.array([base], np.int64)
            sections["runs"] = np.array(runs, np.int64).reshape(-1, 2)
            if base != NO_BASE:
                name = f"bits-{newest[0]}-{base}"
                read = partial(gone, name)
                if name not in in_files:
                    copied = self._bits_of(int(rows[-1])).copy()
                    read = partial(_of_bits, copied)
                parts["base"] = FrozenPart(name, read)
            for number, run in enumerate(runs):
                name = run.named(KEYS)
                keys = self._notes.sections(run) if self._notes.holds(run) and name not in in_files else None
                read = partial(gone, name) if keys is None else partial(self._notes.hand_over, run, keys)
                parts[f"run{number}"] = FrozenPart(name, read)
        return FrozenStage(sections, parts)

    def _newest(self, first: int, end: int, have: Collection[str]) -> tuple[int, list[Run]]:
        """(kept index up to which the bits of the newest generation are a part, or NO_BASE; runs of keys that
        follow). The generation begins with the kept index `first` and now ends before `end`.
        """
        # Keys of an older generation must not set bits in this one.
        runs = runs_in(have, KEYS, first)
        bases = [NO_BASE] + [at for at in _bases_in(have, first) if at <= end]
        covered = {base: covering(runs, max(base, first), end) for base in bases}
        base = max(bases, key=lambda at: (_end_of(covered[at], max(at, first)), at))
        chosen = covered[base]
        at = _end_of(chosen, max(base, first))
        # What is in files by now need not be noted any more.
        self._notes.drop_before(at)
        if at < end:
            run = Run(at, end)
            if not self._notes.holds(run) or (end - at) * NOTE_BYTES >= self.sizing.stride:
                return end, []
            chosen = [*chosen, run]
        return base, chosen

    def _bits_of(self, row: int) -> NDArray[np.uint8]:
        stride = self.sizing.stride
        return self.bloom.bits[row * stride : (row + 1) * stride]

    def _full_bits(self, row: int, first: int) -> Sections:
        """The bits of a full generation, not copied: they do not change until it leaves the window and a new
        one takes its memory. raises: StateError if that has happened"""
        live = self._live_rows()
        if row not in live or self.bloom.generations[row, GENERATION_FIRST_KEPT] != first:
            raise StateError(
                f"bloom-{first}: the exact window passed it before it was written; the disk is too slow for "
                "a window this small"
            )
        return _of_bits(self._bits_of(row))

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
        for number in range(live - 1):
            loaded._bits_of(number)[:] = reader.array(f"{number}.bits", np.uint8, (sizing.stride,))
        if live:
            loaded._restore_newest(live - 1, reader)
        loaded.bloom.cursor[CURSOR_LIVE] = live
        return loaded

    def _restore_newest(self, row: int, reader: SectionReader) -> None:
        """Set the bits of the newest generation. raises: StateError"""
        first, newest = self.bloom.generations[row, :2].tolist()
        at = base = int(reader.array("base", np.int64, (1,))[0])
        if base == NO_BASE:
            at = first
        else:
            self._bits_of(row)[:] = reader.array("base.bits", np.uint8, (self.sizing.stride,))
        for number, run in enumerate(starmap(Run, reader.array("runs", np.int64, (None, 2)).tolist())):
            if not first <= run.first <= at < run.end:
                raise reader.damaged("runs of keys are not in order")
            for states, steps in read_keys(reader.within(f"run{number}."), run):
                bloom_fill(self.bloom, row, states, steps)
            at = run.end
        if at != newest + 1:
            raise reader.damaged(f"keys {at} to {newest + 1} are missing")

    def _live_rows(self) -> NDArray[np.int64]:
        oldest, live = self.bloom.cursor.tolist()
        return np.arange(oldest, oldest + live, dtype=np.int64) % self.sizing.rows

    def _parameters(self) -> NDArray[np.int64]:
        rate = int(np.float64(self.error_rate).view(np.int64))
        sizing = self.sizing
        values = [sizing.messages, sizing.age_ms, rate, self._generations, sizing.slices, sizing.slice_bits]
        return np.array([*values, sizing.rows, AGE_PARTS], dtype=np.int64)


def _of_bits(bits: NDArray[np.uint8]) -> Sections:
    return {"bits": bits}


def _bases_in(names: Iterable[str], first: int) -> list[int]:
    """Up to which kept index there are bits of the generation that begins with `first`, among named parts."""
    name = re.compile(rf"bits-{first}-([0-9]{{1,19}})")
    return [int(found[1]) for found in map(name.fullmatch, names) if found is not None]


def _end_of(runs: list[Run], first: int) -> int:
    return runs[-1].end if runs else first


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
