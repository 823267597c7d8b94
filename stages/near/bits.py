"""Comparing one fingerprint with many: the inner loop of every scan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import popcount
from twinsieve.stages.kernel import kernel

SCAN_BLOCK = 256
"""Fingerprints that a scan compares at a time. Few blocks hold a match, and only these are looked through."""


@kernel
def count_close(fingerprints: NDArray[np.uint64], fingerprint: np.uint64, distance: np.uint64) -> np.int64:
    """How many of the fingerprints differ from `fingerprint` in at most `distance` bits.

    fingerprints: uint64[n], contiguous
    The loop has no branch and one sum, so that a processor with vector instructions compares four or eight
    fingerprints at a time. The type of `distance` matters for this: it must be that of the bits.

    >>> int(count_close(np.array([7, 0, 6], np.uint64), np.uint64(6), np.uint64(1)))
    2
    """
    count = 0
    for i in range(len(fingerprints)):
        count += popcount(fingerprints[i] ^ fingerprint) <= distance
    return np.int64(count)
