"""Input and output of `decide` as tuples for kernels: methods, windows, the exact stage, verdicts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.exact.bloom_kernel import Bloom

NEAR_NONE, NEAR_TEXT, NEAR_HAMMING, NEAR_SIGNATURES = 0, 1, 2, 3
EXACT_NONE, EXACT_BLOOM, EXACT_TRIE = 0, 1, 2
UNJUDGED = 255
UNJUDGED_NEAR = 254
"""The row is judged by the near stage only, because the kept message with its digest was forgotten."""


class JudgeParams(NamedTuple):
    """Windows, time settings and methods as plain numbers. Ages are in ms, -1 for no limit.

    compare_text: 1 if an exact hit in the ring is confirmed by comparing the stored text
    keeps: 1 to add unique rows to the state; 0 to leave the state as it is
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
    keeps: int


class TrieHits(NamedTuple):
    """Result of the trie for each row: the newest entry with its digest that was kept before this chunk.

    is_hit: bool[n], whether there is one; leaders, kept, times: int64[n], its position, kept index and time
    """

    is_hit: NDArray[np.bool_]
    leaders: NDArray[np.int64]
    kept: NDArray[np.int64]
    times: NDArray[np.int64]


class SealedCopies(NamedTuple):
    """For each row the newest message in the sealed segments with its digest tag; empty if there are none.

    kept: int64[n], its kept index or -1; positions, times: int64[n], of that message
    same: bool[n], whether its stored text confirms the hit, or texts are not compared
    """

    kept: NDArray[np.int64]
    positions: NDArray[np.int64]
    times: NDArray[np.int64]
    same: NDArray[np.bool_]


def new_sealed_copies(rows: int) -> SealedCopies:
    """Memory for `rows` rows."""
    return SealedCopies(
        np.full(rows, -1, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.bool_),
    )


class ExactIndex(NamedTuple):
    """Where the exact stage looks behind the open segment.

    bloom, trie_hits: of messages that left the window; one of the two is a placeholder
    sealed: of messages in sealed segments
    """

    bloom: Bloom
    trie_hits: TrieHits
    sealed: SealedCopies = new_sealed_copies(0)


class Outcome(NamedTuple):
    """The verdicts that a kernel writes; columns as in `Verdicts`.

    kinds: on entry UNJUDGED or UNJUDGED_NEAR; any lower value is a recorded verdict, which stays
    details: uint32[n, 2, room], one entry for each row; room is 0 if details are off
    """

    kinds: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    leaders: NDArray[np.int64]
    matched: NDArray[np.int32]
    compared: NDArray[np.int32]
    reasons: NDArray[np.uint8]
    apart_from: NDArray[np.int64]
    details: NDArray[np.uint32]
