"""Which bucket entries are compared: one table from two length codes to a limit of differing bits.

An entry carries a length code (24 steps an octave) and a 32-bit signature. For a pair at similarity s of
summed length n at most (1 - s) * n characters are inserted or deleted, so lengths must be close, and below
PARITY_BELOW characters the parity bits, of which each edit changes one, cannot differ in more places.
From PARITY_BELOW on the signature holds one-bit MinHash values; their limit is measured, not proven.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import MIN_NEAR_LENGTH, PARITY_BELOW, SIMILARITY_SCALE

STEPS_PER_OCTAVE = 24
MAX_CODED_LENGTH = 1580
"""From this length on the code is 255 and says nothing about the length."""

REJECT = -1

_MINHASH_LIMITS = ((9_500, 8), (9_000, 11), (8_500, 13), (8_000, 15), (7_000, 18), (0, 32))
"""(similarity from, differing bits allowed out of 32); kept ≥ .995 of true pairs when measured."""


def length_code(length: int) -> int:
    """floor(24 * log2(length)), at most 255, in integers so that every machine agrees.

    >>> length_code(8), length_code(16), length_code(100_000)
    (72, 96, 255)
    """
    return min(255, (min(length, 4096) ** STEPS_PER_OCTAVE).bit_length() - 1)


def length_codes() -> NDArray[np.uint8]:
    """uint8[MAX_CODED_LENGTH + 1]: `length_code` of each length; 0 for lengths below MIN_NEAR_LENGTH."""
    codes = [0 if n < MIN_NEAR_LENGTH else length_code(n) for n in range(MAX_CODED_LENGTH + 1)]
    return np.array(codes, dtype=np.uint8)


def signature_limits(similarity: int) -> NDArray[np.int8]:
    """int8[256, 256]: differing signature bits allowed between a message and an entry, or REJECT.

    similarity: out of SIMILARITY_SCALE; rows are the message's length code, columns the entry's
    """
    shortest, longest = _ranges()
    bits = next(limit for least, limit in _MINHASH_LIMITS if similarity >= least)
    edits = (longest[:, None] + longest) * (SIMILARITY_SCALE - similarity) // SIMILARITY_SCALE
    are_short, are_long = longest < PARITY_BELOW, shortest >= PARITY_BELOW
    limits = np.select(
        [are_short[:, None] & are_short, are_long[:, None] & are_long],
        [np.minimum(edits, 32), bits],
        default=32,
    )
    exist = shortest > 0
    possible = exist[:, None] & exist & _can_be_alike(shortest, longest, similarity)
    return np.where(possible, limits, REJECT).astype(np.int8)


def _ranges() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Shortest and longest length of each code, int64[256] each; 0 where no length has the code."""
    codes = length_codes()[MIN_NEAR_LENGTH:]
    lengths = np.arange(MIN_NEAR_LENGTH, MAX_CODED_LENGTH + 1)
    shortest, longest = np.zeros(256, np.int64), np.zeros(256, np.int64)
    longest[codes] = lengths
    shortest[codes[::-1]] = lengths[::-1]
    # The last code stands for every longer body too.
    longest[255] = 1 << 40
    return shortest, longest


def _can_be_alike(
    shortest: NDArray[np.int64], longest: NDArray[np.int64], similarity: int
) -> NDArray[np.bool_]:
    """bool[256, 256]: whether some lengths of the two ranges allow it: 2 * min(a, b) / (a + b)."""
    low = np.minimum(longest[:, None], longest)
    high = np.maximum(shortest[:, None], shortest)
    return (low >= high) | (2 * low * SIMILARITY_SCALE >= similarity * (low + high))
