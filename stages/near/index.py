"""What one row is compared with: the kept messages, and both ways to find candidates among them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.near.buckets import Buckets
from twinsieve.stages.near.verify import VerifyParams
from twinsieve.stages.window.ring import RingColumns


class Chains(NamedTuple):
    """The tables of hamming mode.

    masks: uint64[tables], the bits of each table's key
    heads: uint32[tables, cells], newest kept index + 1 (modulo 2 ** 32) of each hash, 0 for none
    next: uint32[tables, N], by ring slot, the one before it
    distances: int8[…], k by body length; a length beyond the last has the last one's k, -1: exact only
    """

    masks: NDArray[np.uint64]
    heads: NDArray[np.uint32]
    next: NDArray[np.uint32]
    distances: NDArray[np.int8]


class CandidateParams(NamedTuple):
    """How candidates are found.

    limits: int8[256, 256], signature limits; near_age: ms or -1 for no limit;
    scan: 1 to compare with all entries
    """

    limits: NDArray[np.int8]
    near_age: int
    scan: int


class NearIndex(NamedTuple):
    """Buckets serve the method text, chains the method hamming; the other one is a placeholder."""

    ring: RingColumns
    buckets: Buckets
    chains: Chains
    candidates: CandidateParams
    verify: VerifyParams
