"""The variants of a fingerprint: all that differ from it in at most k bits."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.near.hamming import FINGERPRINT_BITS


def variant_count(distance: int) -> int:
    """Number of fingerprints within the distance of one, itself included.

    >>> [variant_count(k) for k in range(5)]
    [1, 65, 2081, 43745, 679121]
    """
    return sum(comb(FINGERPRINT_BITS, bits) for bits in range(distance + 1))


def flips_of(distance: int) -> NDArray[np.uint64]:
    """uint64[variant_count]: masks whose XOR with a fingerprint gives its variants, few bits first."""
    masks = [
        sum(1 << bit for bit in chosen)
        for bits in range(distance + 1)
        for chosen in combinations(range(FINGERPRINT_BITS), bits)
    ]
    return np.array(masks, np.uint64)
