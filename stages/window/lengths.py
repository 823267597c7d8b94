"""Which bucket entries are compared with a message: tables of allowed signature bits by two length codes.

An entry holds a length code (24 steps for each doubling of the length) and a signature of 32 bits, or 24 of
them (`window.buckets`). Two bodies with similarity s and summed length n differ by at
most (1 - s) * n inserted or deleted characters. So their lengths must be close. Below PARITY_BELOW
characters, each of these edits changes one parity bit of the signature, so at most that many bits differ.
From PARITY_BELOW on, the signature holds one-bit MinHash values; their limit is measured, not proven. It is
lower for an entry that a single look-up finds.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import MIN_NEAR_LENGTH, PARITY_BELOW, SIMILARITY_SCALE

STEPS_PER_OCTAVE = 24
MAX_CODED_LENGTH = 1580
"""All bodies of this length or more have the code 255."""

REJECT = -1

_MINHASH_LIMITS = ((9_500, 8), (9_000, 11), (8_500, 13), (8_000, 15), (7_000, 18), (0, 32))
_KEYED_LIMITS = ((9_500, 5, 5), (9_000, 4, 7), (8_500, 5, 9), (8_000, 8, 10), (7_000, 11, 12), (0, 24, 24))
"""Allowed differing bits by least similarity. Of 32: (similarity, bits). Of the 24 that are beside the bits
of a key: (similarity, bits of an entry that one look-up finds, bits of one that more find). They were
chosen on two sets, weibo and sms, as the least that keep .998 of the similar pairs; of other sets with a
hundred pairs and more they kept .996. `bench.floors` counts the pairs that a signature refuses."""


def length_code(length: int) -> int:
    """floor(24 * log2(length)), at most 255. Integer arithmetic gives the same result on every machine.

    >>> length_code(8), length_code(16), length_code(100_000)
    (72, 96, 255)
    """
    return min(255, (min(length, 4096) ** STEPS_PER_OCTAVE).bit_length() - 1)


def length_codes() -> NDArray[np.uint8]:
    """uint8[MAX_CODED_LENGTH + 1]: `length_code` of each length; 0 for lengths below MIN_NEAR_LENGTH."""
    codes = [0 if n < MIN_NEAR_LENGTH else length_code(n) for n in range(MAX_CODED_LENGTH + 1)]
    return np.array(codes, dtype=np.uint8)


@cache
def signature_limits(similarity: int, *, keyed: bool) -> NDArray[np.int8]:
    """int8[2, 256, 256]: how many signature bits of a message and an entry may differ, or REJECT.

    [0] is for an entry that one look-up finds, [1] for one that more look-ups find. In each, rows are the
    length code of the message, columns that of the entry.
    similarity: least similarity, out of SIMILARITY_SCALE; keyed: entries have bits of their keys
    """
    shortest, longest = _ranges()
    edits = (longest[:, None] + longest) * (SIMILARITY_SCALE - similarity) // SIMILARITY_SCALE
    are_short, are_long = longest < PARITY_BELOW, shortest >= PARITY_BELOW
    exist = shortest > 0
    possible = exist[:, None] & exist & _can_be_alike(shortest, longest, similarity)
    limits = [
        np.select(
            [are_short[:, None] & are_short, are_long[:, None] & are_long],
            [np.minimum(edits, 32), bits],
            default=32,
        )
        for bits in minhash_limits(similarity, keyed=keyed)
    ]
    return np.where(possible, limits, REJECT).astype(np.int8)


def minhash_limits(similarity: int, *, keyed: bool) -> tuple[int, int]:
    """Allowed differing bits of one-bit MinHash values: (of an entry that one look-up finds, that more find)

    similarity, keyed: as in `signature_limits`
    """
    if keyed:
        return next((once, bits) for least, once, bits in _KEYED_LIMITS if similarity >= least)
    bits = next(bits for least, bits in _MINHASH_LIMITS if similarity >= least)
    return bits, bits


def reach_of(limits: NDArray[np.int8]) -> NDArray[np.uint64]:
    """uint64[256, 3]: for each length code of a message (least, above, bits).

    No entry is allowed whose code is not least to least + above, or which differs in more bits. In `limits`
    stands which entries are. limits: of `signature_limits`
    """
    limits = limits.max(axis=0)
    allowed = limits != REJECT
    least = np.argmax(allowed, axis=1)
    greatest = 255 - np.argmax(allowed[:, ::-1], axis=1)
    none = ~allowed.any(axis=1)
    least[none] = greatest[none] = 255
    return np.stack([least, greatest - least, np.maximum(limits.max(axis=1), 0)], axis=1).astype(np.uint64)


@cache
def _ranges() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(shortest, longest) body length of each code, int64[256] each; 0 if no length has the code."""
    codes = length_codes()[MIN_NEAR_LENGTH:]
    lengths = np.arange(MIN_NEAR_LENGTH, MAX_CODED_LENGTH + 1)
    shortest, longest = np.zeros(256, np.int64), np.zeros(256, np.int64)
    longest[codes] = lengths
    shortest[codes[::-1]] = lengths[::-1]
    # The last code is also the code of all longer bodies.
    longest[255] = 1 << 40
    return shortest, longest


def _can_be_alike(
    shortest: NDArray[np.int64], longest: NDArray[np.int64], similarity: int
) -> NDArray[np.bool_]:
    """bool[256, 256]: whether two codes include lengths a, b with 2 * min(a, b) / (a + b) >= similarity."""
    low = np.minimum(longest[:, None], longest)
    high = np.maximum(shortest[:, None], shortest)
    return (low >= high) | (2 * low * SIMILARITY_SCALE >= similarity * (low + high))
