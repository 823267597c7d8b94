"""The memory of the candidate index: sparse as long as few messages are kept, then a table.

Both have the same buckets with the same entries, so verdicts and saved states do not depend on which it is.
The table for a window of a million messages takes 217 MB, which the system must clear before a short run can
use them. Sparse, ten messages take a megabyte, and 40 MB are enough for 77,000.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import BandLayout
from twinsieve.stages.memory_pages import assign, zeros
from twinsieve.stages.window.buckets import (
    WAYS,
    Buckets,
    bucket_counts,
    entry_count,
    is_keyed,
    write_lists,
    write_table,
)

SPARSE_SHARE = 12
"""A sparse index has room for this part of the entries of its table. An entry takes half as much again."""
_SMALL_BYTES = 1 << 16
"""Bytes of the entries of a sparse index in small pages (`stages/memory_pages.py`); they come in order."""

_NOTHING = np.zeros(1, np.uint32)


class BucketTable:
    """Holds the memory of the buckets.

    buckets: the argument for kernels. Every method that changes the index may replace it by a new object
    """

    buckets: Buckets

    def __init__(self, layout: BandLayout, window: int, load: float) -> None:
        self._load = load
        band_buckets, table_buckets = bucket_counts(window, load)
        self._count = count = entry_count(layout, window, load)
        # Index 0 stands for no entry.
        room = 1 + count // SPARSE_SHARE
        self._is_empty = True
        self._heads_are_small = True
        self.buckets = Buckets(
            zeros(room, np.uint64, small_bytes=_SMALL_BYTES),
            zeros(count // WAYS, np.uint32, small_bytes=count),
            zeros(room, np.uint32, small_bytes=_SMALL_BYTES),
            1,
            1,
            0,
            layout.bands,
            layout.tables,
            band_buckets,
            table_buckets,
            layout.weak,
            layout.key_bits,
            int(is_keyed(window)),
        )

    @property
    def count(self) -> int:
        """Number of entries of the table."""
        return self._count

    @property
    def is_sparse(self) -> bool:
        """Whether the index is sparse; it may become a table in `reserve`."""
        return bool(self.buckets.sparse)

    @property
    def bytes_used(self) -> int:
        """Bytes of the table. As long as the index is sparse it takes a fifth of them at most."""
        return self._count * self.buckets.entries.itemsize

    def reserve(self, kept_index: int, messages: int) -> None:
        """Make room for this many messages. kept_index: of the first one; later messages have later ones"""
        if not self.is_sparse:
            return
        if self._is_empty:
            self._is_empty = False
            self.buckets = self.buckets._replace(base=kept_index)
        self._prepare(self._kept_before(kept_index) + messages)

    def expect(self, kept_index: int, messages: int) -> None:
        """Become a table now if it will when this many more messages are kept. kept_index: of the next one"""
        if self.is_sparse:
            self._prepare(self._kept_before(kept_index) + messages)

    def assign(self, kept_index: int, messages: int) -> None:
        """Have the system assign the memory of this many more messages now. kept_index: of the first one"""
        if self.is_sparse:
            buckets, tables = self.buckets, self.buckets.bands + self.buckets.tables
            low = buckets.first + self._kept_before(kept_index) * tables
            for array in (buckets.entries, buckets.links):
                assign(array[low : low + messages * tables])

    def _kept_before(self, kept_index: int) -> int:
        """How many messages a sparse index has places for between number `base` and this one."""
        return 0 if self._is_empty else kept_index - self.buckets.base

    def _prepare(self, messages: int) -> None:
        """Prepare a sparse index for this many messages from number `base` on."""
        buckets = self.buckets
        end = buckets.first + messages * (buckets.bands + buckets.tables)
        if end > len(buckets.entries):
            self.fill()
        elif self._heads_are_small and end * mmap.PAGESIZE > buckets.heads.nbytes:
            self._heads_are_small = False
            heads = zeros(len(buckets.heads), np.uint32, small_bytes=0)
            heads[:] = buckets.heads
            self.buckets = buckets._replace(heads=heads)

    def fill(self) -> None:
        """Become a table."""
        if not self.is_sparse:
            return
        entries = zeros(self._count, np.uint64, small_bytes=0)
        # Messages reach all pages within their first hundreds anyway.
        assign(entries)
        write_table(self.buckets, entries)
        self._use(entries)

    def _use(self, entries: NDArray[Any]) -> None:
        """Be the table with these entries."""
        self.buckets = self.buckets._replace(entries=entries, heads=_NOTHING, links=_NOTHING, sparse=0)

    def entries(self) -> NDArray[np.uint64]:
        """The entries of the table; those of a sparse index are copied."""
        if not self.is_sparse:
            return self.buckets.entries
        entries = zeros(self._count, np.uint64, small_bytes=self._count * 8)
        write_table(self.buckets, entries)
        return entries

    def set_keyed(self, keyed: int) -> None:
        """Set `Buckets.keyed` to that of a table whose entries come next."""
        self.buckets = self.buckets._replace(keyed=keyed)

    def map(self, entries: NDArray[Any]) -> None:
        """Use these entries of a table of the same size, to which nothing is added any more."""
        self._use(entries)

    def restore(self, entries: NDArray[Any]) -> None:
        """Fill this empty table with the entries of a saved table of its size."""
        # The first entry of a bucket is its newest one, so it is not 0.
        filled = np.flatnonzero(entries[::WAYS])
        rows = entries.reshape(-1, WAYS)[filled]
        if self.is_sparse and np.count_nonzero(rows) < len(self.buckets.entries):
            self.buckets = self.buckets._replace(first=write_lists(entries, filled, self.buckets))
            return
        self.fill()
        self.buckets.entries.reshape(-1, WAYS)[filled] = rows
