"""Moves a saved index into an index of another size, if the near window was changed between save and load."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import kernel
from twinsieve.stages.window.buckets import INDEX_MASK, WAYS, Buckets
from twinsieve.stages.window.chains import Chains


def resize_buckets(old: Buckets, new: Buckets, kept: int, ring_size: int) -> None:
    """Fill the empty buckets `new` with the entries of `old`.

    An entry does not hold its key, so its new bucket is not known exactly. Therefore a new bucket gets the
    newest entries of all old buckets whose keys can belong to it. In a larger index, some entries are then in
    several buckets; each is compared like any other entry.
    kept: messages kept since the beginning; ring_size: number of them that are still in the ring
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
            # In both indexes, the bucket of a key is floor(key * number of buckets / 2 ** 32).
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
    """The saved heads and links (`Chains.next`) as chains of the size of `empty`.

    kept, ring_size: as for `resize_buckets`
    """
    capacity, cells = empty.next.shape[1], empty.heads.shape[1]
    indices = np.arange(kept - ring_size, kept, dtype=np.int64)
    moved = np.zeros_like(empty.next)
    moved[:, indices % capacity] = links[:, indices % links.shape[1]]
    # The cell of a key is the low bits of its hash. With more cells than before, several cells begin with the
    # same old chain. With fewer cells, chains would have to be merged; so the old number of cells stays.
    more = max(1, cells // heads.shape[1])
    return empty._replace(heads=np.tile(heads, (1, more)), next=moved)
