"""Which bucket entries deserve a look: one table from two length codes to a limit of differing bits.

An entry carries a length code (24 steps an octave) and a 32-bit signature. For a pair at similarity s of
summed length n at most (1 - s) * n characters are inserted or deleted, so lengths must be close, and below
PARITY_BELOW characters the parity bits, of which each edit changes one, cannot differ in more places.
From PARITY_BELOW on the signature holds one-bit MinHash values; their limit is measured, not proven.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import MIN_NEAR_LENGTH, SIMILARITY_SCALE
from twinsieve.stages.fingerprint.bag import PARITY_BELOW

STEPS_PER_OCTAVE = 24
LONGEST_CODED = 1580
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
    """uint8[LONGEST_CODED + 1]: `length_code` of each length; 0 for lengths below MIN_NEAR_LENGTH."""
    codes = [0 if n < MIN_NEAR_LENGTH else length_code(n) for n in range(LONGEST_CODED + 1)]
    return np.array(codes, dtype=np.uint8)


def signature_limits(similarity: int) -> NDArray[np.int8]:
    """int8[256, 256]: differing signature bits allowed between a message and an entry, or REJECT.

    similarity: out of SIMILARITY_SCALE; rows are the message's length code, columns the entry's
    """
    shortest, longest = _ranges()
    limits = np.full((256, 256), REJECT, dtype=np.int8)
    bits = next(limit for least, limit in _MINHASH_LIMITS if similarity >= least)
    first, last = length_code(MIN_NEAR_LENGTH), 255
    for a in range(first, last + 1):
        for b in range(first, last + 1):
            if not shortest[a] or not shortest[b]:
                continue
            if not _can_be_alike(shortest[a], longest[a], shortest[b], longest[b], similarity):
                continue
            if longest[a] < PARITY_BELOW and longest[b] < PARITY_BELOW:
                edits = (longest[a] + longest[b]) * (SIMILARITY_SCALE - similarity) // SIMILARITY_SCALE
                limits[a, b] = min(32, edits)
            elif shortest[a] >= PARITY_BELOW and shortest[b] >= PARITY_BELOW:
                limits[a, b] = bits
            else:
                limits[a, b] = 32
    return limits


def _ranges() -> tuple[list[int], list[int]]:
    shortest, longest = [0] * 256, [0] * 256
    for n in range(MIN_NEAR_LENGTH, LONGEST_CODED + 1):
        code = length_code(n)
        shortest[code] = shortest[code] or n
        longest[code] = n
    # The last code stands for every longer body too.
    longest[255] = 1 << 40
    return shortest, longest


def _can_be_alike(a_least: int, a_most: int, b_least: int, b_most: int, similarity: int) -> bool:
    """Whether some lengths of the two ranges allow the similarity: 2 * min(a, b) / (a + b)."""
    if a_most >= b_least and b_most >= a_least:
        return True
    low, high = (a_most, b_least) if a_most < b_least else (b_most, a_least)
    return 2 * low * SIMILARITY_SCALE >= similarity * (low + high)
