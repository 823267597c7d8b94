"""Kept messages that are forgotten lead nobody: the sieve says what the plain loop says without them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.oracle import Oracle, rows_of
from tests.property.streams import PARTS, Row, Rows, as_row, batch_of, table
from tests.whole_state import from_bytes, to_bytes
from twinsieve.stages.contract import Batch, ExactConfig, Kind, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve

Cuts = list[tuple[int, list[int]]]
"""(rows, spared): after that many rows, forget the kept messages of the exact window but the newest `spared`."""

CUTS = st.lists(
    st.tuples(st.integers(1, 30), st.lists(st.integers(0, 5), min_size=1, max_size=4)), min_size=1, max_size=5
)
FEW_TEXTS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "今天天气很好我们一起出去玩吧",
                "今天天气很好我们一起出去玩啊哈",
                "今天天气很好我们一起出去玩吧吧",
                "the storm will hit the coast at night",
                "the storm will hit the coast tonight",
                "一二三四五六七八",
                "短文",
                "12345678",
            ]
        ),
        st.one_of(st.none(), st.integers(0, 100)),
        st.integers(0, 2),
        st.integers(0, 1),
    ),
    min_size=20,
    max_size=50,
)


def tag_of(batch: Batch, row: int) -> int:
    return int(batch.fingerprints.digests[row, 0] ^ batch.scopes[row])


def both(config: SieveConfig, batch: Batch, cuts: Cuts, size: int) -> tuple[list[Row], list[Row]]:
    """What sieve and plain loop say; on the way the sieve is saved, and another one applies what it says."""
    sieve, follower, oracle = BatchSieve(config), BatchSieve(config), Oracle(config)
    found: list[Row] = []
    wanted: list[Row] = []
    forgotten: set[int] = set()
    plain = rows_of(batch)
    low = 0
    for cut, picks in [*sorted(cuts, key=lambda each: each[0]), (len(batch), [])]:
        high = min(max(low, cut), len(batch))
        for first in range(low, high, size):
            part = batch.slice(first, min(first + size, high))
            verdicts = sieve.judge(part)
            found += table(verdicts)
            follower.apply(part, verdicts)
            follower.judged_by = follower.rules
        said = [oracle.judge(row) for row in plain[low:high]]
        wanted += map(as_row, said)
        inside = [kept for kept in oracle.kept if oracle._inside(kept, config.exact.window)]
        inside = [kept for kept in inside if kept.row.position not in forgotten]
        gone = sorted({inside[-1 - pick].row.position for pick in picks if pick < len(inside)})
        oracle.forget(set(gone))
        forgotten.update(gone)
        positions = np.array(gone, np.int64)
        tags = np.array([tag_of(batch, position - 100) for position in gone], np.uint64)
        for each in (sieve, follower):
            each.forget(positions, tags)
        sieve = from_bytes(to_bytes(sieve), config)
        low = high
    assert to_bytes(follower) == to_bytes(sieve)
    return found, wanted


@settings(max_examples=examples(25), deadline=None)
@given(
    FEW_TEXTS,
    CUTS,
    st.integers(1, 20),
    st.integers(3, 40),
    st.sampled_from([1, 7, 1000]),
    st.booleans(),
    st.sampled_from([3, 7, 1_000]),
)
@pytest.mark.parametrize("method", ["text", "hamming", "signatures"])
def test_forgotten_messages_lead_nobody_in_either_stage(
    method: str, rows: Rows, cuts: Cuts, near: int, exact: int, size: int, scoped: bool, segment: int
) -> None:
    config = SieveConfig(
        ExactConfig("trie", window=Window(exact)),
        NearConfig(
            method=method, candidates="scan", window=Window(near), segment=segment, parts=PARTS, share=2
        ),  # type: ignore[arg-type]
        scoped=scoped,
    )
    found, wanted = both(config, batch_of(rows, scoped=scoped), cuts, size)
    assert found == wanted


@settings(max_examples=examples(25), deadline=None)
@given(FEW_TEXTS, CUTS, st.integers(1, 10), st.sampled_from([1, 7, 1000]))
def test_a_bloom_filter_is_not_taken_at_its_word_for_them(
    rows: Rows, cuts: Cuts, ring: int, size: int
) -> None:
    """The ring is short, so that most copies are known to the filter alone."""
    config = SieveConfig(
        ExactConfig("bloom", 1e-9, Window(1_000)), NearConfig(method="none", window=Window(ring))
    )
    found, wanted = both(config, batch_of(rows), cuts, size)
    assert [row[0] for row in found] == [row[0] for row in wanted]


def test_what_is_forgotten_takes_no_room_for_ever() -> None:
    """It leaves with the window, at the next time that something is forgotten."""
    config = SieveConfig(ExactConfig("bloom", 1e-9, Window(50)), NearConfig(method="none", window=Window(10)))
    batch = batch_of([(f"正文第{number}条各不相同的内容", None, 0, 0) for number in range(400)])
    sieve = BatchSieve(config)
    for low in range(0, 400, 10):
        part = batch.slice(low, low + 10)
        assert set(sieve.judge(part).kinds.tolist()) == {Kind.UNIQUE}
        sieve.forget(part.positions, part.fingerprints.digests[:, 0])
        assert len(sieve._forgotten) < 100
