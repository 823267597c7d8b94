"""Char bags, and the parity signatures of short bodies: filters that never reject a pair that is alike.

Both count characters by a hash of the code point. An inserted, deleted or replaced character changes only few
counts. So the sum of the smaller counts is an upper bound of the longest common subsequence, and the number
of differing parity bits is a lower bound of the Indel distance.
The longer a body, the more edits a pair that is alike may have, so the parities of long bodies reject little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import PARITY_BELOW, STORED_LENGTH
from twinsieve.stages.kernel import kernel

BAG_BYTES = 32
"""Bytes of a char bag: 64 bins of 4 bits."""

BAG_LIMIT = 15
"""Greatest count that a bin can hold; a bin with this value may stand for a greater count."""


@kernel(callee=True)
def bag_bin(char: np.uint32) -> np.int64:
    """The bin, 0…63, in which a code point is counted."""
    return np.int64(np.uint32(char * np.uint32(0x9E3779B1)) >> np.uint32(26))


@kernel(callee=True)
def parity_bit(char: np.uint32) -> np.int64:
    """The signature bit, 0…31, that each occurrence of a code point flips."""
    return np.int64(np.uint32(char * np.uint32(0x85EBCA77)) >> np.uint32(27))


@kernel(allocates=True)
def fill_bags(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    exact_only: NDArray[np.bool_],
    bags: NDArray[np.uint8],
    signatures: NDArray[np.uint32],
) -> None:
    """Write the bags of all near rows, and the signatures of near rows below PARITY_BELOW characters.

    bags: uint8[n, 32], counts of the first STORED_LENGTH characters; bin 2b is the low half of byte b
    signatures: uint32[n], bit b is the parity of the number of characters whose `parity_bit` is b
    Exact-only rows and the signatures of longer bodies are not changed.
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
