"""A saved index under a window of another size: no entry is lost, none is added."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import kernel
from twinsieve.stages.window.buckets import INDEX_MASK, WAYS, Buckets
from twinsieve.stages.window.chains import Chains


def resize_buckets(old: Buckets, new: Buckets, kept: int, ring_size: int) -> None:
    """Fill `new`, which is empty, with the entries of `old`.

    A bucket gets the newest entries of all old buckets that a message which looks into it could have stood
    in; of a larger index some entries so stand in more buckets than one, and are compared like any other.
    kept: messages kept since the beginning; ring_size: how many of them the ring still has
    """
    ages = np.zeros(WAYS, np.int64)
    _resize(old.entries, old.band_buckets, new.entries, new.band_buckets, new.bands, kept, ring_size, ages)
    bands_old, bands_new = (buckets.bands * buckets.band_buckets * WAYS for buckets in (old, new))
    _resize(
        old.entries[bands_old:],
        old.table_buckets,
        new.entries[bands_new:],
        new.table_buckets,
        new.tables,
        kept,
        ring_size,
        ages,
    )


@kernel
def _resize(
    old: NDArray[np.uint64],
    old_buckets: int,
    new: NDArray[np.uint64],
    new_buckets: int,
    tables: int,
    kept: int,
    ring_size: int,
    ages: NDArray[np.int64],
) -> None:
    for table in range(tables):
        for bucket in range(new_buckets):
            # A key stands in bucket floor(key * buckets / 2 ** 32), with either number of buckets.
            first = bucket * old_buckets // new_buckets
            last = ((bucket + 1) * old_buckets - 1) // new_buckets
            target = (table * new_buckets + bucket) * WAYS
            count = 0
            for source in range(first, last + 1):
                start = (table * old_buckets + source) * WAYS
                for way in range(WAYS):
                    entry = old[start + way]
                    if entry == np.uint64(0):
                        break
                    age = (kept - 1 - np.int64(entry & np.uint64(INDEX_MASK))) & INDEX_MASK
                    if age >= ring_size:
                        continue
                    place = count
                    while place > 0 and ages[place - 1] > age:
                        place -= 1
                    if place == WAYS:
                        continue
                    count = min(count + 1, WAYS)
                    for behind in range(count - 1, place, -1):
                        ages[behind] = ages[behind - 1]
                        new[target + behind] = new[target + behind - 1]
                    ages[place] = age
                    new[target + place] = entry


def resize_chains(
    heads: NDArray[np.uint32], links: NDArray[np.uint32], empty: Chains, kept: int, ring_size: int
) -> Chains:
    """The saved heads and links as chains of the size that `empty` has. Arguments as in `resize_buckets`."""
    capacity, cells = empty.next.shape[1], empty.heads.shape[1]
    indices = np.arange(kept - ring_size, kept, dtype=np.int64)
    moved = np.zeros_like(empty.next)
    moved[:, indices % capacity] = links[:, indices % links.shape[1]]
    # A cell is the low bits of a hash: of more cells, several begin with the same chain. Fewer would
    # have to merge chains; what was saved is kept instead.
    more = max(1, cells // heads.shape[1])
    return empty._replace(heads=np.tile(heads, (1, more)), next=moved)
