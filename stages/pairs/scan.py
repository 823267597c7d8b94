"""Scheme `scan`: compare each fingerprint with all before it. The yardstick of the others."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import popcount
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.hamming import SCAN_BLOCK, count_close
from twinsieve.stages.pairs.found import Found, write_pair


def find(distinct: NDArray[np.uint64], distance: int, found: Found) -> None:
    """Add all pairs of places in `distinct` within the distance."""
    found.add_by_rows(len(distinct), partial(_scan, distinct, np.uint64(distance)))


@kernel
def _scan(
    distinct: NDArray[np.uint64], distance: np.uint64, low: int, high: int, pairs: NDArray[np.int64]
) -> int:
    """How many pairs rows low to high have with earlier rows; as many as fit are written to `pairs`."""
    count = ZERO
    # Block by block for all rows: a block stays in the cache.
    for start in range(0, high, SCAN_BLOCK):
        for row in range(max(low, start + 1), high):
            end = min(start + SCAN_BLOCK, row)
            if not count_close(distinct[start:end], distinct[row], distance):
                continue
            for other in range(start, end):
                if popcount(distinct[other] ^ distinct[row]) <= distance:
                    write_pair(pairs, count, other, row)
                    count += 1
    return count
