"""What is known of one input partition's offsets: judged ranges, and verdicts not known to be emitted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from pipeline.blocks_verdicts import blank_verdicts, pick_verdicts, put_verdicts
from stages.contract import Kind, Verdicts


class Ranges:
    """Disjoint ranges [first, end) of offsets, joined where they touch.

    >>> ranges = Ranges([(0, 5), (9, 12)])
    >>> ranges.add(5, 7)
    >>> list(ranges), ranges.end
    ([(0, 7), (9, 12)], 12)
    """

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        for first, end in ranges:
            self.add(first, end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self._firsts, self._ends, strict=True))

    def __bool__(self) -> bool:
        return bool(self._firsts)

    @property
    def end(self) -> int:
        """The offset after the last one, 0 without any."""
        return self._ends[-1] if self._ends else 0

    def add(self, first: int, end: int) -> None:
        """Include [first, end); an empty one changes nothing."""
        if end <= first:
            return
        low = bisect_left(self._ends, first)
        high = bisect_right(self._firsts, end)
        if low < high:
            first = min(first, self._firsts[low])
            end = max(end, self._ends[high - 1])
        self._firsts[low:high] = [first]
        self._ends[low:high] = [end]

    def contain(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool[n] for ascending offsets."""
        if not self._firsts or not len(offsets) or int(offsets[0]) >= self._ends[-1]:
            return np.zeros(len(offsets), np.bool_)
        place = np.searchsorted(np.array(self._firsts, np.int64), offsets, "right") - 1
        ends = np.array(self._ends, np.int64)
        return (place >= 0) & (offsets < ends[place])


class OpenVerdicts:
    """Verdicts by offset, in the order in which blocks were judged, until they are known to be emitted."""

    def __init__(self) -> None:
        self.chunks: list[tuple[NDArray[np.int64], Verdicts]] = []

    def __len__(self) -> int:
        return sum(len(offsets) for offsets, _ in self.chunks)

    def add(self, offsets: NDArray[np.int64], verdicts: Verdicts) -> None:
        """Remember verdicts of ascending offsets, none of them open already."""
        if len(offsets):
            self.chunks.append((offsets, verdicts))

    def drop(self, first: int, end: int) -> int:
        """Forget [first, end); returns how many were open there."""
        if end <= first:
            return 0
        dropped = 0
        kept: list[tuple[NDArray[np.int64], Verdicts]] = []
        for offsets, verdicts in self.chunks:
            low, high = np.searchsorted(offsets, (first, end))
            dropped += int(high - low)
            if low == high:
                kept.append((offsets, verdicts))
                continue
            for part in (slice(0, low), slice(high, len(offsets))):
                if part.stop > part.start:
                    kept.append((offsets[part], pick_verdicts(verdicts, part)))
        self.chunks = kept
        return dropped

    def find(self, offsets: NDArray[np.int64]) -> tuple[NDArray[np.bool_], Verdicts]:
        """Which of the ascending offsets are open, and verdicts for all of them (REPLAYED where not open)."""
        found = np.zeros(len(offsets), np.bool_)
        verdicts = blank_verdicts(len(offsets), Kind.REPLAYED)
        for known, stored in self.chunks:
            if not len(offsets) or known[-1] < offsets[0] or known[0] > offsets[-1]:
                continue
            place = np.minimum(np.searchsorted(known, offsets), len(known) - 1)
            here = known[place] == offsets
            put_verdicts(verdicts, here, pick_verdicts(stored, place[here]))
            found |= here
        return found, verdicts
