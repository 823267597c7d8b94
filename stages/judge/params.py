"""Input and output of `decide` as tuples for kernels: methods, windows, the exact stage, verdicts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.exact.bloom_kernel import Bloom, new_bloom
from twinsieve.stages.exact.bloom_sizing import BloomSizing
from twinsieve.stages.near.matches import Copies, Matches
from twinsieve.stages.near.verify import Scratch

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


class ExactIndex(NamedTuple):
    """Where the exact stage looks for messages that left the near window; one of the two is a placeholder."""

    bloom: Bloom
    trie_hits: TrieHits


def no_bloom() -> Bloom:
    """A placeholder for kernels if the exact method is not bloom."""
    return new_bloom(BloomSizing(1, 1, 1, 0.5, 1, 1, messages=1, age_ms=-1, span_ms=-1))


def no_trie_hits() -> TrieHits:
    """A placeholder for kernels if the exact method is not trie."""
    none = np.zeros(0, np.int64)
    return TrieHits(np.zeros(0, np.bool_), none, none, none)


class KeptRows(NamedTuple):
    """The rows of a chunk of at most n rows that were kept so far.

    rows: int32[n], the kept rows, in order; their kept indices follow each other
    counts: int64[1], how many they are
    """

    rows: NDArray[np.int32]
    counts: NDArray[np.int64]


class Workspace(NamedTuple):
    """What phase two has of one chunk, beside its rows.

    matches, copies: what the look-ups found
    forgotten: int64[…], kept indices of the messages in the window that lead no more, ascending
    apart: int64[n], on entry -1: kept index of an entry in a sealed segment that a rule kept apart from the
        row, if the verdict shows what differs. The caller writes these details
    kept: the rows kept in this chunk so far
    """

    matches: Matches
    copies: Copies
    forgotten: NDArray[np.int64]
    apart: NDArray[np.int64]
    scratch: Scratch
    kept: KeptRows


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
