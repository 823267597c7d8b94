"""Pairs of fingerprints by permuted tables: sort by each table's key and compare what has one key.

A pair that several tables show is taken from the first of them, so nothing has to be remembered.
source: Manku, Jain, Das Sarma 2007, section 3
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import popcount
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.hamming import table_masks
from twinsieve.stages.pairs.found import Found, write_pair


def find(distinct: NDArray[np.uint64], distance: int, found: Found) -> None:
    """Add all pairs of places in `distinct` within the distance."""
    masks = table_masks(distance + 2, distance)
    for table in range(len(masks)):
        keys = distinct & masks[table]
        order = np.argsort(keys, kind="stable")
        found.add(partial(_pairs_of_table, distinct, keys[order], order, masks, table, distance))


@kernel
def _pairs_of_table(
    distinct: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    order: NDArray[np.int64],
    masks: NDArray[np.uint64],
    table: int,
    distance: int,
    pairs: NDArray[np.int64],
) -> int:
    """How many pairs this table is the first to show; as many of them as fit are written to `pairs`."""
    count = ZERO
    low = 0
    while low < len(keys):
        high = low + 1
        while high < len(keys) and keys[high] == keys[low]:
            high += 1
        for left in range(low, high):
            for right in range(left + 1, high):
                differing = distinct[order[left]] ^ distinct[order[right]]
                if np.int64(popcount(differing)) > distance:
                    continue
                is_first = True
                for earlier in range(table):
                    if differing & masks[earlier] == np.uint64(0):
                        is_first = False
                        break
                if is_first:
                    write_pair(pairs, count, order[left], order[right])
                    count += 1
        low = high
    return count
