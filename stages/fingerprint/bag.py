"""Char bags, and the parity signature of short bodies: what no true pair can fail.

Both count characters by a hash of the code point. One inserted, deleted or replaced character
changes few counts, so `Σ min of counts` bounds the longest common subsequence from above, and the
number of differing parity bits bounds the Indel distance from below.
Measured: 32 parities reject most candidates below 40 characters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import PARITY_BELOW, STORED_LENGTH
from twinsieve.stages.kernel import kernel

BAG_BYTES = 32
"""Bytes of a char bag: 64 bins of 4 bits."""

BAG_LIMIT = 15
"""Largest count a bin holds; a bin with this value may stand for more."""


@kernel(callee=True)
def bag_bin(char: np.uint32) -> np.int64:
    """Bin 0…63 of a code point."""
    return np.int64(np.uint32(char * np.uint32(0x9E3779B1)) >> np.uint32(26))


@kernel(callee=True)
def parity_bit(char: np.uint32) -> np.int64:
    """Signature bit 0…31 that a code point flips."""
    return np.int64(np.uint32(char * np.uint32(0x85EBCA77)) >> np.uint32(27))


@kernel(allocates=True)
def fill_bags(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    exact_only: NDArray[np.bool_],
    bags: NDArray[np.uint8],
    signatures: NDArray[np.uint32],
) -> None:
    """Write the bags of all near rows, and the signatures of those below PARITY_BELOW characters.

    bags: uint8[n, 32], from the first STORED_LENGTH characters; bin 2b in the low half of byte b
    signatures: uint32[n], bit b is the parity of the characters with parity_bit b
    Rows that are exact-only, and signatures of longer bodies, are left as they are.
    """
    counts = np.zeros(2 * BAG_BYTES, np.int64)
    for row in range(len(starts) - 1):
        if exact_only[row]:
            continue
        start = starts[row]
        length = starts[row + 1] - start
        counts[:] = 0
        for i in range(start, start + min(length, STORED_LENGTH)):
            counts[bag_bin(chars[i])] += 1
        for b in range(BAG_BYTES):
            low = min(counts[2 * b], BAG_LIMIT)
            high = min(counts[2 * b + 1], BAG_LIMIT)
            bags[row, b] = low | (high << 4)
        if length < PARITY_BELOW:
            signature = np.uint32(0)
            for i in range(start, start + length):
                signature ^= np.uint32(1) << np.uint32(parity_bit(chars[i]))
            signatures[row] = signature
