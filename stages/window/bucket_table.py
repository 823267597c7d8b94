"""The memory of the buckets: small pages while few buckets hold something, then large ones.

The table has its full size from the start, so a bucket is the same one whatever the pages: verdicts and
states do not depend on them. Ten messages take 1 MB of it instead of 190.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import BandLayout
from twinsieve.stages.pages import zeros
from twinsieve.stages.window.buckets import WAYS, Buckets, bucket_counts, entry_count
from twinsieve.stages.window.resize import resize_buckets

SMALL_SHARE = 8
"""The table moves to large pages when the buckets that hold something, a small page each, would take this
part of it."""

_NOTHING = np.zeros(0, np.uint64)


class BucketTable:
    """Owner of the buckets; `buckets` is what kernels get, and is replaced when the table moves."""

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
        )
        # First entries of the buckets that hold something, ascending; None once all pages are large.
        self._filled: NDArray[np.int64] | None = np.zeros(0, np.int64)

    def reserve(self, filled: NDArray[np.int64]) -> None:
        """Let these buckets be written to; move the table when too many hold something then.

        filled: int64[n], first entries of buckets, in any order
        """
        if self._filled is None:
            return
        together = np.union1d(self._filled, filled)
        if len(together) * mmap.PAGESIZE * SMALL_SHARE > self._count * 8:
            self._move(self._filled // WAYS)
        else:
            self._filled = together

    def restore(self, entries: NDArray[Any], window: int, kept: int, ring_size: int) -> None:
        """Fill this table, which is empty, with the entries of a saved table of that window.

        kept: messages kept since the beginning; ring_size: how many of them the ring still has
        """
        if len(entries) == self._count:
            filled = _filled_buckets(entries)
            self.reserve(filled)
            _rows(self.buckets.entries)[filled // WAYS] = _rows(entries)[filled // WAYS]
            return
        sizes = bucket_counts(window, self._load)
        old = self.buckets._replace(entries=entries, band_buckets=sizes[0], table_buckets=sizes[1])
        # Any bucket of the new table may get something of an old one.
        self._move(np.zeros(0, np.int64))
        resize_buckets(old, self.buckets, kept, ring_size)

    def _move(self, rows: NDArray[np.int64]) -> None:
        """Move to large pages; free the small ones first.

        rows: int64[n], places of all buckets that hold something
        """
        filled = _rows(self.buckets.entries)[rows]
        self._filled = None
        self.buckets = self.buckets._replace(entries=_NOTHING)
        entries = zeros(self._count, np.uint64, small_bytes=0)
        _rows(entries)[rows] = filled
        self.buckets = self.buckets._replace(entries=entries)


def _rows(entries: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """uint64[buckets, WAYS], the same memory."""
    return entries.reshape(-1, WAYS)


def _filled_buckets(entries: NDArray[np.uint64]) -> NDArray[np.int64]:
    """First entries of the buckets that hold something: their newest entry stands first."""
    return np.flatnonzero(entries[::WAYS]) * WAYS
