"""Sets of offsets of one input partition: ranges of judged offsets, and offsets with an open verdict.

A verdict is open as long as the index does not know that the message was emitted (written to its output).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import Columns, PerRow
from twinsieve.stages.contract import Kind, Verdicts


class Ranges:
    """Disjoint ranges [first, end) of offsets; ranges that touch are joined.

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
        """The offset after the last range, 0 if there is no range."""
        return self._ends[-1] if self._ends else 0

    def add(self, first: int, end: int) -> None:
        """Include [first, end); an empty range changes nothing."""
        if end <= first:
            return
        low = bisect_left(self._ends, first)
        high = bisect_right(self._firsts, end)
        if low < high:
            first = min(first, self._firsts[low])
            end = max(end, self._ends[high - 1])
        self._firsts[low:high] = [first]
        self._ends[low:high] = [end]

    def remove(self, offsets: NDArray[np.int64]) -> None:
        """Exclude these ascending offsets.

        >>> ranges = Ranges([(0, 9)])
        >>> ranges.remove(np.array([3, 4, 8]))
        >>> list(ranges)
        [(0, 3), (5, 8)]
        """
        for first, end in _runs(offsets):
            self._cut(first, end)

    def _cut(self, first: int, end: int) -> None:
        low = bisect_right(self._ends, first)
        high = bisect_left(self._firsts, end)
        if low >= high:
            return
        left = [(self._firsts[low], first), (end, self._ends[high - 1])]
        left = [part for part in left if part[0] < part[1]]
        self._firsts[low:high] = [part[0] for part in left]
        self._ends[low:high] = [part[1] for part in left]

    def contain(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of these ascending offsets is included, as bool[n]."""
        if not self._firsts or not len(offsets) or int(offsets[0]) >= self._ends[-1]:
            return np.zeros(len(offsets), np.bool_)
        place = np.searchsorted(np.array(self._firsts, np.int64), offsets, "right") - 1
        ends = np.array(self._ends, np.int64)
        return (place >= 0) & (offsets < ends[place])


@dataclass(slots=True)
class OpenRows(Columns):
    """n open verdicts: verdicts of messages that are not known to be emitted."""

    offsets: Annotated[NDArray[np.int64], PerRow("<i8")]
    """ascending"""
    verdicts: Verdicts
    tags: Annotated[NDArray[np.uint64], PerRow("<u8")]
    """first half of the digest, XORed with the scope; 0 for a message without a digest"""


_NO_ROWS = OpenRows.blank(0)
"""The result of most calls, because there is seldom an open verdict in their range."""


class OpenVerdicts:
    """Open verdicts by offset. Offsets after the last open one are answered without a search.

    chunks: sorted by first offset; no offset is in two chunks
    """

    def __init__(self) -> None:
        self.chunks: list[OpenRows] = []
        self._last = -1

    def __bool__(self) -> bool:
        return bool(self.chunks)

    def add(self, chunk: OpenRows) -> None:
        """Add open verdicts with ascending offsets; there must be no open verdict at any of these offsets."""
        if not len(chunk):
            return
        self._last = max(self._last, int(chunk.offsets[-1]))
        self.chunks.insert(bisect_left(self.chunks, _first(chunk), key=_first), chunk)

    def reach(self, first: int, end: int) -> bool:
        """Whether any offset in [first, end) has an open verdict."""
        reached = self.chunks[: bisect_left(self.chunks, end, key=_first)]
        return any(
            low < high
            for chunk in reached
            for low, high in [np.searchsorted(chunk.offsets, (first, end)).tolist()]
        )

    def drop(self, first: int, end: int) -> OpenRows:
        """Remove the open verdicts in [first, end); returns them in ascending order."""
        reached = bisect_left(self.chunks, end, key=_first)
        dropped: list[OpenRows] = []
        is_cut = False
        kept: list[OpenRows] = []
        for chunk in self.chunks[:reached]:
            low, high = np.searchsorted(chunk.offsets, (first, end)).tolist()
            if low == high:
                kept.append(chunk)
                continue
            dropped.append(chunk.slice(low, high))
            kept += [part for part in (chunk.slice(0, low), chunk.slice(high, len(chunk))) if len(part)]
            is_cut = is_cut or high < len(chunk)
        self.chunks[:reached] = kept
        if is_cut:
            self.chunks.sort(key=_first)
        return _joined(dropped)

    def take(self, offsets: NDArray[np.int64]) -> OpenRows:
        """Remove the open verdicts at these ascending offsets; returns them in ascending order."""
        return _joined([self.drop(first, end) for first, end in _runs(offsets)])

    def take_absent(self, first: int, end: int, offsets: NDArray[np.int64]) -> OpenRows:
        """Remove the open verdicts in [first, end), except for those at `offsets` (ascending); returns the
        removed ones in ascending order."""
        if first > self._last:
            return _NO_ROWS
        chunk_offsets = [chunk.offsets for chunk in self.chunks[: bisect_left(self.chunks, end, key=_first)]]
        open_offsets = np.sort(np.concatenate([_NO_ROWS.offsets, *chunk_offsets]))
        inside = open_offsets[np.searchsorted(open_offsets, first) : np.searchsorted(open_offsets, end)]
        return self.take(np.setdiff1d(inside, offsets, assume_unique=True))

    def find(self, offsets: NDArray[np.int64]) -> tuple[NDArray[np.bool_], Verdicts]:
        """Whether each of these ascending offsets has an open verdict (bool[n]), and this verdict (REPLAYED
        if there is none)."""
        is_open = np.zeros(len(offsets), np.bool_)
        verdicts = Verdicts.blank(len(offsets), fill={"kinds": Kind.REPLAYED})
        if not len(offsets) or offsets[0] > self._last:
            return is_open, verdicts
        for chunk in self.chunks[: bisect_right(self.chunks, int(offsets[-1]), key=_first)]:
            open_offsets = chunk.offsets
            if open_offsets[-1] < offsets[0]:
                continue
            place = np.minimum(np.searchsorted(open_offsets, offsets), len(open_offsets) - 1)
            here = open_offsets[place] == offsets
            verdicts.put(here, chunk.verdicts.take(place[here]))
            is_open |= here
        return is_open, verdicts


def _runs(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges [first, end) that hold exactly these ascending offsets."""
    cuts = np.flatnonzero(np.diff(offsets) > 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(offsets, cuts) if len(run)]


def _first(chunk: OpenRows) -> int:
    return int(chunk.offsets[0])


def _joined(chunks: list[OpenRows]) -> OpenRows:
    if len(chunks) <= 1:
        return chunks[0] if chunks else _NO_ROWS
    rows = OpenRows.concat(chunks)
    return rows.take(np.argsort(rows.offsets, kind="stable"))
