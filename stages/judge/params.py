"""Input and output of `decide`: methods and windows as numbers, the exact stage, verdicts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.exact.bloom_kernel import Bloom

NEAR_NONE, NEAR_TEXT, NEAR_HAMMING = 0, 1, 2
EXACT_NONE, EXACT_BLOOM, EXACT_TRIE = 0, 1, 2
UNJUDGED = 255
UNJUDGED_NEAR = 254
"""To be judged by the near stage alone: the message that was kept with this digest no longer leads."""


class JudgeParams(NamedTuple):
    """Windows, time and methods, as plain numbers; ages in ms, -1 for no limit.

    compare_text: 1 if a confirmed exact hit compares the stored text too
    """

    near: int
    exact: int
    exact_messages: int
    exact_age: int
    near_messages: int
    near_age: int
    max_ahead: int
    late_judge: int
    late_after: int
    compare_text: int


class TrieHits(NamedTuple):
    """Result of the trie for each row: newest entry of its digest before this chunk.

    is_hit: bool[n]; leaders, kept, times: int64[n]
    """

    is_hit: NDArray[np.bool_]
    leaders: NDArray[np.int64]
    kept: NDArray[np.int64]
    times: NDArray[np.int64]


class ExactIndex(NamedTuple):
    """Looks up messages older than the ring: one of the two, the other one is a placeholder."""

    bloom: Bloom
    trie_hits: TrieHits


class Outcome(NamedTuple):
    """Where verdicts go; columns as in `Verdicts`. kinds[i] below UNJUDGED_NEAR on entry: a recorded
    decision. details: uint32[n, 2, room], by row; room is 0 where details are off"""

    kinds: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    leaders: NDArray[np.int64]
    matched: NDArray[np.int32]
    compared: NDArray[np.int32]
    reasons: NDArray[np.uint8]
    apart_from: NDArray[np.int64]
    details: NDArray[np.uint32]
