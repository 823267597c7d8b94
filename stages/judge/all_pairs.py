"""Finds all pairs of fingerprints in a column that differ in at most k bits, with permuted tables.

First, equal fingerprints are grouped. Then, for each table of `hamming.table_masks`, the distinct
fingerprints are sorted by the bits of the table's key; those with the same key stand next to each other and
are compared. A pair that appears in several tables is taken only from the first of them, so found pairs need
not be stored for a check.
source: Manku, Jain, Das Sarma 2007, section 3
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import starts_of
from twinsieve.stages.contract import MAX_DISTANCE
from twinsieve.stages.errors import UsageError
from twinsieve.stages.intrinsics import popcount
from twinsieve.stages.kernel import kernel
from twinsieve.stages.near.hamming import table_masks

_FIRST_ROOM = 1 << 12


def all_pairs(fingerprints: NDArray[np.uint64], distance: int, max_pairs: int) -> NDArray[np.int64]:
    """int64[m, 2]: the two rows of each pair within the distance; the earlier row is first; pairs are sorted.

    fingerprints: uint64[n]; distance: bits, 0..7
    raises: UsageError for a distance out of this range, or if there are more than `max_pairs` pairs

    >>> all_pairs(np.array([7, 0, 6, 7], dtype=np.uint64), 1, 100).tolist()
    [[0, 2], [0, 3], [2, 3]]
    """
    if not 0 <= distance <= MAX_DISTANCE:
        raise UsageError(f"k is {distance}; use 0..{MAX_DISTANCE}")
    distinct, group = np.unique(fingerprints, return_inverse=True)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=len(distinct)).astype(np.int64)
    starts = starts_of(sizes)
    alike = _distinct_pairs(distinct, distance, max_pairs) if distance else np.zeros((0, 2), np.int64)
    inside = int((sizes * (sizes - 1) // 2).sum())
    across = int((sizes[alike[:, 0]] * sizes[alike[:, 1]]).sum())
    if inside + across > max_pairs:
        raise _too_many(max_pairs)
    pairs = np.empty((inside + across, 2), np.int64)
    _expand(alike, order, starts, pairs)
    pairs.sort(axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _distinct_pairs(distinct: NDArray[np.uint64], distance: int, max_pairs: int) -> NDArray[np.int64]:
    masks = table_masks(distance + 2, distance)
    pairs = np.empty((_FIRST_ROOM, 2), np.int64)
    count = 0
    for table in range(len(masks)):
        keys = distinct & masks[table]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        while True:
            added = _pairs_of_table(distinct, keys, order, masks, table, distance, pairs[count:])
            if count + added > max_pairs:
                raise _too_many(max_pairs)
            if count + added <= len(pairs):
                break
            pairs = np.concatenate([pairs[:count], np.empty((2 * added, 2), np.int64)])
        count += added
    return pairs[:count]


def _too_many(max_pairs: int) -> UsageError:
    return UsageError(
        f"there are more than {max_pairs:,} pairs; use a smaller k, drop equal rows first, or raise max_pairs"
    )


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
    """Write the pairs that appear in this table and in no earlier one to `pairs`, as many as fit.

    returns: the number of all such pairs
    """
    count = 0
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
                    if count < len(pairs):
                        pairs[count, 0] = order[left]
                        pairs[count, 1] = order[right]
                    count += 1
        low = high
    return count


@kernel
def _expand(
    alike: NDArray[np.int64], order: NDArray[np.int64], starts: NDArray[np.int64], pairs: NDArray[np.int64]
) -> None:
    """Write the pairs of rows: those inside each group of equal fingerprints, and those of two alike groups.

    alike: int64[m, 2], pairs of groups; order: int64[n], rows sorted by group
    starts: int64[groups + 1], the rows of group g are order[starts[g]:starts[g + 1]]
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
