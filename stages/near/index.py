"""What one row is compared with: the kept messages, and both ways to find candidates among them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.near.verify import VerifyParams
from twinsieve.stages.window.buckets import Buckets
from twinsieve.stages.window.chains import Chains
from twinsieve.stages.window.ring import RingColumns


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
