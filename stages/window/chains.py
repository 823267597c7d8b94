"""The candidate indexes of the methods hamming and signatures, as tuples for kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Chains(NamedTuple):
    """The tables of the method hamming. A table is a hash table of chains of kept messages.

    masks: uint64[tables], the fingerprint bits that form the key of each table
    heads: uint32[tables, cells], kept index + 1 (modulo 2 ** 32) of the newest message of each cell, or 0
    next: uint32[tables, N], by ring slot: kept index + 1 of the message before it in the chain, or 0
    distances: int8[…], k by body length, -1 for exact-only; longer bodies have the last entry
    second: int8[1], k of the second SimHash of a message, -1 if messages have one
    """

    masks: NDArray[np.uint64]
    heads: NDArray[np.uint32]
    next: NDArray[np.uint32]
    distances: NDArray[np.int8]
    second: NDArray[np.int8]


class PartChains(NamedTuple):
    """The chains, as kernels take them. A link is (kept index << 4 | number of the part) + 1; 0 is no link.

    heads: uint64[cells], a power of two, the newest link of each cell
    next: uint64[N * parts], for part p of the message in ring slot s, at s * parts + p, the link before it
    """

    heads: NDArray[np.uint64]
    next: NDArray[np.uint64]
