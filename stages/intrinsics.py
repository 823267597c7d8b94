"""Functions that kernels of all stages use: hashing, and machine instructions that Numba does not offer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import Instruction, kernel

prefetch: Any = Instruction("prefetch")
popcount: Any = Instruction("popcount")
flags_at: Any = Instruction("flags_at")
lanes_equal: Any = Instruction("lanes_equal")
lanes_close: Any = Instruction("lanes_close")
lanes_between: Any = Instruction("lanes_between")
"""See `stages/instructions.py`."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, rounded to an odd number. Multiplication by it spreads neighbouring keys
over the whole range.

source: Knuth, The Art of Computer Programming 3, section 6.4
"""
FNV_OFFSET, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
"""Constants of a hash over a sequence of numbers. It starts with value = FNV_OFFSET; then for each number
value = (value ^ number) * FNV_PRIME.

source: RFC 9923, FNV-1a of 64 bits
"""


@kernel
def mix64(x: np.uint64) -> np.uint64:
    """A well-mixed hash of x, uint64; different numbers have different hashes.

    source: Stafford's variant 13 of the MurmurHash3 finaliser, as in SplitMix64

    >>> hex(int(mix64(np.uint64(1))))
    '0x5692161d100b05e5'
    """
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel(callee=True)
def cell_of(keys: NDArray[np.uint64], key: np.uint64) -> np.int64:
    """The cell of a hash table that holds the key, or else the empty cell in which to insert it.

    keys: uint64[2**k], k at most 32, the table; 0 is an empty cell, and at least one cell must be empty
    key: not 0
    """
    mask = np.int64(len(keys) - 1)
    cell = np.int64((key * GOLDEN) >> np.uint64(32)) & mask
    while keys[cell] != np.uint64(0) and keys[cell] != key:
        cell = (cell + np.int64(1)) & mask
    return cell


@kernel(callee=True, inlined=True)
def first_lane(lanes: np.uint64) -> np.int64:
    """Number of the lowest bit that is 1. lanes: not 0"""
    return np.int64(popcount(~lanes & (lanes - np.uint64(1))))
