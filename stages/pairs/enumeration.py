"""Scheme `enumerate`: flip every choice of at most k bits of a fingerprint, and look each result up.

The fingerprints stand in a hash table; there are C(64, 0) + … + C(64, k) look-ups for each.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import mix64
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.pairs.found import Found, write_pair
from twinsieve.stages.pairs.variants import flips_of


def find(distinct: NDArray[np.uint64], distance: int, found: Found) -> None:
    """Add all pairs of places in `distinct` within the distance."""
    flips = flips_of(distance)
    cells = np.zeros(1 << (2 * len(distinct)).bit_length(), np.uint32)
    _fill(distinct, cells)
    found.add_by_rows(len(distinct), partial(_look_up, distinct, cells, flips))


@kernel(callee=True)
def _cell_of(distinct: NDArray[np.uint64], cells: NDArray[np.uint32], value: np.uint64) -> np.int64:
    """The cell of a fingerprint, or the empty cell where it would stand. cells: place + 1, 0 for empty"""
    mask = np.int64(len(cells) - 1)
    # Many variants differ in their high bits alone, and a multiplication moves bits only upwards.
    cell = np.int64(mix64(value) & np.uint64(mask))
    while cells[cell] != np.uint32(0) and distinct[np.int64(cells[cell]) - np.int64(1)] != value:
        cell = (cell + np.int64(1)) & mask
    return cell


@kernel
def _fill(distinct: NDArray[np.uint64], cells: NDArray[np.uint32]) -> None:
    for row in range(len(distinct)):
        cells[_cell_of(distinct, cells, distinct[row])] = np.uint32(row + 1)


@kernel
def _look_up(
    distinct: NDArray[np.uint64],
    cells: NDArray[np.uint32],
    flips: NDArray[np.uint64],
    low: int,
    high: int,
    pairs: NDArray[np.int64],
) -> int:
    """How many pairs rows low to high have with earlier rows; as many as fit are written to `pairs`."""
    count = ZERO
    for row in range(low, high):
        for flip in range(len(flips)):
            other = np.int64(cells[_cell_of(distinct, cells, distinct[row] ^ flips[flip])]) - np.int64(1)
            if other < 0 or other >= row:
                continue
            write_pair(pairs, count, other, row)
            count += 1
    return count
