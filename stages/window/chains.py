"""The candidate index of hamming mode, as kernels take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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
