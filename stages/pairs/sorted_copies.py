"""Scheme `sorted`: k + 1 blocks, and for each block a copy that is rotated, sorted and searched by halving.

If two fingerprints differ in at most k bits, one of k + 1 blocks is equal in both. Each copy is rotated to
the left until its block stands in the highest bits, and sorted; the fingerprints with the same block are then
a span, whose ends a binary search finds.
A pair is taken from the first block that is equal in both.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import popcount
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.hamming import block_edges
from twinsieve.stages.pairs.found import Found, write_pair


def find(distinct: NDArray[np.uint64], distance: int, found: Found) -> None:
    """Add all pairs of places in `distinct` within the distance."""
    edges = np.array(block_edges(distance + 1), np.int64)
    for block in range(distance + 1):
        high = np.uint64(edges[block + 1] % 64)
        rotated = distinct << (np.uint64(64) - high) % np.uint64(64)
        if high:
            rotated |= distinct >> high
        order = np.argsort(rotated, kind="stable")
        found.add(partial(_pairs_of_block, distinct, rotated[order], order, edges, block, distance))


@kernel(callee=True)
def first_from(values: NDArray[np.uint64], value: np.uint64) -> np.int64:
    """Place of the first of the sorted values that is not below `value`."""
    low, high = np.int64(0), np.int64(len(values))
    while low < high:
        middle = (low + high) >> np.int64(1)
        if values[middle] < value:
            low = middle + np.int64(1)
        else:
            high = middle
    return low


@kernel
def _pairs_of_block(
    distinct: NDArray[np.uint64],
    rotated: NDArray[np.uint64],
    order: NDArray[np.int64],
    edges: NDArray[np.int64],
    block: int,
    distance: int,
    pairs: NDArray[np.int64],
) -> int:
    """How many pairs this block is the first to show; as many of them as fit are written to `pairs`.

    rotated: sorted; order: place in `distinct` of each; edges: first bit of each block, and 64
    """
    count = ZERO
    below = np.uint64(64 - (edges[block + 1] - edges[block]))
    for row in range(len(rotated)):
        key = np.uint64(0) if below >= np.uint64(64) else (rotated[row] >> below) << below
        for other in range(first_from(rotated, key), row):
            differing = distinct[order[row]] ^ distinct[order[other]]
            if np.int64(popcount(differing)) > distance:
                continue
            is_first = True
            for earlier in range(block):
                size = np.uint64(edges[earlier + 1] - edges[earlier])
                part = ((np.uint64(1) << size) - np.uint64(1)) << np.uint64(edges[earlier])
                if differing & part == np.uint64(0):
                    is_first = False
                    break
            if is_first:
                write_pair(pairs, count, order[other], order[row])
                count += 1
    return count
