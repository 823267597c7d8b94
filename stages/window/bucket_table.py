"""The memory of the buckets: small pages as long as few buckets are filled, then large pages.

The table always has its full size, so the number of a bucket does not depend on the pages. So verdicts and
saved states do not depend on them either. With small pages, ten messages take 1 MB instead of 190 MB.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import BandLayout
from twinsieve.stages.pages import assign, zeros
from twinsieve.stages.window.buckets import WAYS, Buckets, bucket_counts, entry_count, is_keyed
from twinsieve.stages.window.resize import resize_buckets

SMALL_SHARE = 8
"""The table moves to large pages if its filled buckets, each on a small page of its own, would take more than
the table's size divided by this number."""

_NOTHING = np.zeros(0, np.uint64)


class BucketTable:
    """Holds the memory of the buckets.

    buckets: the argument for kernels. `reserve` and `restore` may replace it by a new object, when they move
        the table to large pages
    """

    buckets: Buckets

    def __init__(self, layout: BandLayout, window: int, load: float) -> None:
        self._load = load
        band_buckets, table_buckets = bucket_counts(window, load)
        self._count = entry_count(layout, window, load)
        self.buckets = Buckets(
            zeros(self._count, np.uint64, small_bytes=self._count * 8),
            layout.bands,
            layout.tables,
            band_buckets,
            table_buckets,
            layout.weak,
            layout.key_bits,
            int(is_keyed(window)),
        )
        # Indices of the first entries of filled buckets, ascending; None after the move to large pages.
        self._filled: NDArray[np.int64] | None = np.zeros(0, np.int64)

    def reserve(self, buckets_to_fill: Callable[[], NDArray[np.int64]]) -> None:
        """Prepare writing to buckets. If too many are filled then (SMALL_SHARE), move to large pages.

        buckets_to_fill: returns int64[n], indices of their first entries, in any order
        """
        if self._filled is None:
            return
        together = np.union1d(self._filled, buckets_to_fill())
        if self._needs_large(len(together)):
            self._move(self._filled // WAYS)
        else:
            self._filled = together

    @property
    def may_move(self) -> bool:
        """Whether `reserve` may still move the table."""
        return self._filled is not None

    def expect(self, messages: int) -> None:
        """Prepare for this many more messages: move to large pages now if they will be needed then."""
        buckets = min(messages * (self.buckets.bands + self.buckets.tables), self._count // WAYS)
        if self._filled is not None and self._needs_large(buckets):
            self._move(self._filled // WAYS)

    def _needs_large(self, buckets: int) -> bool:
        return buckets * mmap.PAGESIZE * SMALL_SHARE > self._count * 8

    def set_keyed(self, keyed: int) -> None:
        """Set `Buckets.keyed` to that of a table whose entries come next."""
        self.buckets = self.buckets._replace(keyed=keyed)

    def map(self, entries: NDArray[Any]) -> None:
        """Use these entries of a table of the same size, to which nothing is added any more."""
        self._filled = None
        self.buckets = self.buckets._replace(entries=entries)

    def restore(self, entries: NDArray[Any], window: int, kept: int, ring_size: int) -> None:
        """Fill this empty table with the entries of a saved table.

        window: window of the saved table, in messages
        kept: messages kept since the beginning; ring_size: number of them that are still in the ring
        """
        if len(entries) == self._count:
            filled = _filled_buckets(entries)
            self.reserve(lambda: filled)
            _rows(self.buckets.entries)[filled // WAYS] = _rows(entries)[filled // WAYS]
            return
        sizes = bucket_counts(window, self._load)
        old = self.buckets._replace(entries=entries, band_buckets=sizes[0], table_buckets=sizes[1])
        # Large pages, because every bucket of the new table may get entries.
        self._move(np.zeros(0, np.int64))
        resize_buckets(old, self.buckets, kept, ring_size)

    def _move(self, rows: NDArray[np.int64]) -> None:
        """Move to large pages; free the small pages first. rows: int64[n], numbers of all filled buckets"""
        filled = _rows(self.buckets.entries)[rows]
        self._filled = None
        self.buckets = self.buckets._replace(entries=_NOTHING)
        entries = zeros(self._count, np.uint64, small_bytes=0)
        # Messages reach all pages within their first hundreds anyway.
        assign(entries)
        _rows(entries)[rows] = filled
        self.buckets = self.buckets._replace(entries=entries)


def _rows(entries: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """uint64[buckets, WAYS]: the entries as one row for each bucket; the same memory."""
    return entries.reshape(-1, WAYS)


def _filled_buckets(entries: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Indices of the first entries of filled buckets. The first entry is the newest, so it is not 0."""
    return np.flatnonzero(entries[::WAYS]) * WAYS
