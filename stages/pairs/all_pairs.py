"""All pairs of a column of fingerprints that differ in at most k bits.

Equal fingerprints are put together first; permuted tables find the pairs of distinct ones.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import starts_of
from twinsieve.stages.contract import MAX_DISTANCE
from twinsieve.stages.errors import UsageError
from twinsieve.stages.intrinsics import popcount
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.hamming import table_masks
from twinsieve.stages.pairs.found import Found, check_count, write_pair


def all_pairs(fingerprints: NDArray[np.uint64], distance: int, max_pairs: int) -> NDArray[np.int64]:
    """int64[m, 2]: rows of every pair within the distance, the earlier row first, sorted.

    fingerprints: uint64[n]; distance: bits, 0 to MAX_DISTANCE
    raises: UsageError for another distance, or if there are more than `max_pairs` pairs

    >>> all_pairs(np.array([7, 0, 6, 7], dtype=np.uint64), 1, 100).tolist()
    [[0, 2], [0, 3], [2, 3]]
    """
    if not 0 <= distance <= MAX_DISTANCE:
        raise UsageError(f"k is {distance}; use 0..{MAX_DISTANCE}")
    distinct, group = np.unique(fingerprints, return_inverse=True)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=len(distinct)).astype(np.int64)
    starts = starts_of(sizes)
    found = Found(max_pairs)
    if distance:
        _add_alike(distinct, distance, found)
    alike = found.pairs
    inside = int((sizes * (sizes - 1) // 2).sum())
    across = int((sizes[alike[:, 0]] * sizes[alike[:, 1]]).sum())
    check_count(inside + across, max_pairs)
    pairs = np.empty((inside + across, 2), np.int64)
    _of_rows(alike, order, starts, pairs)
    pairs.sort(axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


@kernel
def _of_rows(
    alike: NDArray[np.int64], order: NDArray[np.int64], starts: NDArray[np.int64], pairs: NDArray[np.int64]
) -> None:
    """Write the pairs of rows: of equal fingerprints, and of each two distinct ones that are alike.

    order: int64[n], rows by group; starts: int64[groups + 1], group g is order[starts[g]:starts[g + 1]]
    """
    place = 0
    for group in range(len(starts) - 1):
        for left in range(starts[group], starts[group + 1]):
            for right in range(left + 1, starts[group + 1]):
                pairs[place, 0] = order[left]
                pairs[place, 1] = order[right]
                place += 1
    for pair in range(len(alike)):
        first, second = alike[pair, 0], alike[pair, 1]
        for left in range(starts[first], starts[first + 1]):
            for right in range(starts[second], starts[second + 1]):
                pairs[place, 0] = order[left]
                pairs[place, 1] = order[right]
                place += 1


def _add_alike(distinct: NDArray[np.uint64], distance: int, found: Found) -> None:
    """Add all pairs of places in `distinct` within the distance, by permuted tables.

    Fingerprints are sorted by each table's key, and compared where they have one key. A pair that several
    tables show is taken from the first of them, so nothing has to be remembered.
    source: Manku, Jain, Das Sarma 2007, section 3
    """
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
