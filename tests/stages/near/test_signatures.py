"""Hashes that very many kept messages share: the search is bounded, and says so where that can matter."""

from __future__ import annotations

import numpy as np
import pytest

from twinsieve.stages.contract import (
    Batch,
    ExactConfig,
    Flag,
    Kind,
    NearConfig,
    SieveConfig,
    Verdicts,
    Window,
)
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, SignatureConfig
from twinsieve.stages.near.signatures import MAX_LINKS

_HOT, _WARM, _RARE = 10, 20, 1_000
_PARTS = 3


def batch_of(rows: list[set[int]]) -> Batch:
    """Messages with these part hashes, different in everything else."""
    scheme = Scheme(SchemeConfig(signature=SignatureConfig("sentences", _PARTS, joined=False)))
    bodies, prints = scheme.read([f"第{number}条各不相同的内容" for number in range(len(rows))])
    prints.digests[:, 0] = np.arange(1, len(rows) + 1)
    prints.part_hashes[:] = 0
    for row, hashes in enumerate(rows):
        prints.part_hashes[row, : len(hashes)] = sorted(hashes)
    none = np.full(len(rows), -(2**63))
    zeros = np.zeros(len(rows), np.uint64)
    return Batch(np.arange(len(rows)), none, none, none, zeros, zeros, bodies, prints)


def judged(rows: list[set[int]], share: int) -> Verdicts:
    near = NearConfig(method="signatures", window=Window(20_000), parts=_PARTS, share=share)
    return BatchSieve(SieveConfig(ExactConfig("none"), near)).judge(batch_of(rows))


def test_a_rare_hash_finds_the_oldest_message_behind_a_hot_one() -> None:
    kept = [{_HOT, _RARE + number} for number in range(2 * MAX_LINKS)]
    verdicts = judged([*kept, {_HOT, _RARE}], share=2)
    assert verdicts.kinds[-1] == Kind.NEAR
    assert (verdicts.leaders[-1], verdicts.shared[-1], verdicts.flags[-1]) == (0, 2, 0)


def test_a_match_that_only_hot_hashes_show_may_be_missed_and_that_is_told() -> None:
    kept = [{_HOT, _WARM, 1}] + [
        {_HOT if number % 2 else _WARM, _RARE + number} for number in range(2 * MAX_LINKS + 2)
    ]
    verdicts = judged([*kept, {_HOT, _WARM, 2}], share=2)
    assert verdicts.kinds[-1] == Kind.UNIQUE
    assert verdicts.flags[-1] == Flag.CUT_SHORT
    # One link less in one of the two chains, and the match is found.
    verdicts = judged([*kept[:-3], {_HOT, _WARM, 2}], share=2)
    assert (verdicts.kinds[-1], verdicts.leaders[-1], verdicts.flags[-1]) == (Kind.NEAR, 0, 0)


def test_a_message_with_fewer_hashes_than_it_needs_is_compared_with_nothing() -> None:
    verdicts = judged([{5}, {5}, {5, 6}, {5, 6, 7}, set()], share=2)
    assert verdicts.kinds.tolist() == [Kind.UNIQUE, Kind.UNIQUE, Kind.UNIQUE, Kind.NEAR, Kind.UNIQUE]
    assert verdicts.flags.tolist() == [Flag.NO_FEATURES, Flag.NO_FEATURES, 0, 0, Flag.NO_FEATURES]
    assert verdicts.shared.tolist() == [-1, -1, -1, 2, -1]


def test_the_leader_is_the_one_with_most_in_common_then_the_oldest() -> None:
    verdicts = judged([{1, 2, 3}, {3, 4, 5}, {4, 6, 7}, {3, 4, 9}, {3, 8, 9}], share=2)
    assert verdicts.leaders.tolist()[3] == 1
    assert verdicts.kinds[4] == Kind.UNIQUE
    assert judged([{1, 2, 3}, {1, 2, 4}], share=1).leaders[1] == 0


@pytest.mark.parametrize(("parts", "share"), [(0, 1), (17, 1), (4, 5), (4, 0)])
def test_hashes_that_cannot_be_shared_are_refused(parts: int, share: int) -> None:
    near = NearConfig(method="signatures", parts=parts, share=share)
    with pytest.raises(UsageError, match=r"near\.signature: "):
        BatchSieve(SieveConfig(near=near))
