"""Scheme `expand`: store every variant of every fingerprint, so that one look-up finds all.

An entry has 8 bytes: in its high bits a hash of the variant, in its low bits the row that it is a variant of.
The entries are sorted, so a look-up is a binary search. Variants whose hashes agree by chance are told apart
by the distance of the two rows.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import mix64, popcount
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.pairs.found import Found, write_pair
from twinsieve.stages.pairs.sorted_copies import first_from
from twinsieve.stages.pairs.variants import flips_of


def find(distinct: NDArray[np.uint64], distance: int, found: Found) -> None:
    """Add all pairs of places in `distinct` within the distance."""
    flips = flips_of(distance)
    row_mask = np.uint64((1 << len(distinct).bit_length()) - 1)
    entries = np.empty(len(distinct) * len(flips), np.uint64)
    _store(distinct, flips, row_mask, entries)
    entries.sort()
    found.add(partial(_look_up, distinct, entries, row_mask, distance))


@kernel
def _store(
    distinct: NDArray[np.uint64], flips: NDArray[np.uint64], row_mask: np.uint64, entries: NDArray[np.uint64]
) -> None:
    place = 0
    for row in range(len(distinct)):
        for flip in range(len(flips)):
            hashed = mix64(distinct[row] ^ flips[flip])
            entries[place] = (hashed & ~row_mask) | np.uint64(row)
            place += 1


@kernel
def _look_up(
    distinct: NDArray[np.uint64],
    entries: NDArray[np.uint64],
    row_mask: np.uint64,
    distance: int,
    pairs: NDArray[np.int64],
) -> int:
    """How many pairs there are; as many of them as fit are written to `pairs`."""
    count = ZERO
    for row in range(len(distinct)):
        hashed = mix64(distinct[row]) & ~row_mask
        place = first_from(entries, hashed)
        before = np.int64(-1)
        # Entries of one hash are sorted by row: those of earlier rows come first.
        while place < len(entries) and entries[place] < hashed | np.uint64(row):
            other = np.int64(entries[place] & row_mask)
            place += np.int64(1)
            if other == before or np.int64(popcount(distinct[row] ^ distinct[other])) > distance:
                continue
            before = other
            write_pair(pairs, count, other, row)
            count += 1
    return count
