"""Batch size, threads, a save and load, and a replay of decisions change nothing."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Literal
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.property.streams import DIFFERENCES, PARTS, ROWS, Rows, batch_of, judged, table
from tests.whole_state import from_bytes, to_bytes
from twinsieve.stages.contract import (
    NO_TIME,
    BandLayout,
    Batch,
    ExactConfig,
    Flag,
    Kind,
    NearConfig,
    SieveConfig,
    TimeConfig,
    Window,
)
from twinsieve.stages.judge import near_window as stage
from twinsieve.stages.judge.batch_sieve import BatchSieve

_METHODS = st.sampled_from(
    [("bloom", "text"), ("trie", "text"), ("bloom", "hamming"), ("trie", "signatures"), ("trie", "none")]
)


@st.composite
def _configs(draw: st.DrawFn) -> SieveConfig:
    """Small windows and crowded buckets, so that entries fall out of both within a batch."""
    exact, near = draw(_METHODS)
    return SieveConfig(
        ExactConfig(exact, 0.3, Window(draw(st.integers(1, 60)), draw(st.sampled_from([None, 30_000])))),
        NearConfig(
            method=near,
            parts=PARTS,
            share=draw(st.integers(1, PARTS)),
            similarity=draw(st.sampled_from([6_000, 8_500])),
            window=Window(draw(st.integers(1, 40)), draw(st.sampled_from([None, 30_000]))),
            bucket_load=draw(st.sampled_from([8.4, 40.0])),
            differences=draw(DIFFERENCES),
            same_id=draw(st.sampled_from(["drop", "pass"])),
            candidates=draw(st.sampled_from(["index", "index", "scan"])),
            segment=draw(st.sampled_from([3, 7, 16_000_000])),
        ),
        TimeConfig(late=draw(st.sampled_from(["insert", "judge"])), late_after_ms=20_000),
        layout=BandLayout(),
        scoped=draw(st.booleans()),
    )


@settings(max_examples=examples(50))
@given(ROWS, _configs(), st.sampled_from([2, 4]))
def test_batch_size_and_threads_change_nothing(rows: Rows, config: SieveConfig, threads: int) -> None:
    batch = batch_of(rows * 3, scoped=config.scoped)
    expected = judged(config, batch, 1)
    assert judged(config, batch, 7) == expected
    assert judged(config, batch, 1000) == expected
    threaded = replace(config, near=replace(config.near, threads=threads))
    assert judged(threaded, batch, 1000) == expected
    with patch.object(stage, "_WORTH_THREADS", 1):
        assert judged(threaded, batch, 1000) == expected


def _parts(rows: Rows, config: SieveConfig, cut: int) -> tuple[Batch, Batch]:
    """The rows twice, before and behind a cut."""
    batch = batch_of(rows * 2, scoped=config.scoped)
    cut = min(cut, len(batch))
    return batch.slice(0, cut), batch.slice(cut, len(batch))


@settings(max_examples=examples(30))
@given(ROWS, _configs(), st.integers(0, 60))
def test_a_save_and_load_at_any_point_changes_nothing(rows: Rows, config: SieveConfig, cut: int) -> None:
    first, rest = _parts(rows, config, cut)
    sieve = BatchSieve(config)
    said = table(sieve.judge(first))
    loaded = from_bytes(to_bytes(sieve), config)
    assert loaded.stats() == sieve.stats()
    said += table(loaded.judge(rest))
    assert said == judged(config, Batch.concat([first, rest]), 1000)


@settings(max_examples=examples(30))
@given(ROWS, _configs(), st.integers(0, 60))
def test_a_frozen_state_is_that_of_its_moment_however_late_it_is_written(
    rows: Rows, config: SieveConfig, cut: int
) -> None:
    first, rest = _parts(rows, config, cut)
    sieve, at_once, late = BatchSieve(config), io.BytesIO(), io.BytesIO()
    sieve.judge(first)
    frozen = sieve.freeze()
    frozen.write(at_once)
    sieve.judge(rest)
    frozen.write(late)
    assert late.getvalue() == at_once.getvalue()


def _aged(method: Literal["bloom", "trie"]) -> SieveConfig:
    """The exact window forgets after 30 s, the near window does not."""
    near = NearConfig(method="text", similarity=6_000, window=Window(40))
    return SieveConfig(ExactConfig(method, 0.3, Window(60, 30_000)), near)


_STORY, _LIKE_IT = "今天天气很好我们一起出去玩吧", "今天天气很好我们一起出去玩啊哈"


@settings(max_examples=examples(30))
@example([(_STORY, 0, 0, 0), (_LIKE_IT, 100, 0, 0)], _aged("bloom"), 2)
@given(ROWS, _configs(), st.integers(0, 60))
def test_recorded_decisions_rebuild_the_state(rows: Rows, config: SieveConfig, cut: int) -> None:
    first, rest = _parts(rows, config, cut)
    judge, follow = BatchSieve(config), BatchSieve(config)
    follow.apply(first, judge.judge(first))
    follow.judged_by = follow.rules
    assert to_bytes(follow) == to_bytes(judge)
    assert table(follow.judge(rest)) == table(judge.judge(rest))


@settings(max_examples=examples(30))
@example(
    [
        ("短文一二三四五六七八", 0, 0, 0),
        (_STORY, 0, 0, 0),
        ("短文一二三四五六七八", 0, 0, 0),
        (_LIKE_IT, 100, 0, 0),
        ("短文一二三四五六七八", 100, 0, 0),
        ("the storm will hit the coast at night", 100, 0, 0),
    ],
    _aged("trie"),
    2,
    [0],
)
@given(ROWS, _configs(), st.integers(1, 60), st.lists(st.integers(0, 20), max_size=6))
def test_recorded_decisions_rebuild_the_state_where_messages_were_forgotten(
    rows: Rows, config: SieveConfig, cut: int, picks: list[int]
) -> None:
    """Texts come back as copies of forgotten ones, several times in a batch."""
    first, rest = _parts(rows * 2, config, cut)
    judge, follow = BatchSieve(config), BatchSieve(config)
    verdicts = judge.judge(first)
    follow.apply(first, verdicts)
    follow.judged_by = follow.rules
    kept = np.flatnonzero((verdicts.kinds == Kind.UNIQUE) & (verdicts.flags & int(Flag.LATE) == 0))
    gone = kept[[pick for pick in sorted(set(picks)) if pick < len(kept)]]
    tags = first.fingerprints.digests[:, 0] ^ first.scopes
    for each in (judge, follow):
        each.forget(first.positions[gone], tags[gone])
    follow.apply(rest, judge.judge(rest))
    follow.judged_by = follow.rules
    assert to_bytes(follow) == to_bytes(judge)


@settings(max_examples=examples(30))
@given(ROWS, _configs(), _configs(), st.integers(0, 60))
def test_another_similarity_guard_or_age_holds_from_the_next_message_on(
    rows: Rows, config: SieveConfig, other: SieveConfig, cut: int
) -> None:
    first, rest = _parts(rows, config, cut)
    near = replace(
        config.near,
        similarity=other.near.similarity,
        differences=other.near.differences,
        window=replace(config.near.window, age_ms=other.near.window.age_ms),
    )
    changed = replace(config, near=near, time=other.time)
    judge, follow = BatchSieve(config), BatchSieve(changed)
    follow.apply(first, judge.judge(first))
    follow.judged_by = follow.rules
    loaded = from_bytes(to_bytes(judge), changed)
    assert table(loaded.judge(rest)) == table(follow.judge(rest))


def test_an_empty_batch_is_judged() -> None:
    assert judged(SieveConfig(near=NearConfig(window=Window(5))), batch_of([]), 1) == []


@pytest.mark.parametrize("method", ["text", "hamming", "signatures", "none"])
def test_a_chunk_larger_than_the_window_is_judged_row_by_row(method: str) -> None:
    rows = [(f"第{i % 7}个完全不同的故事{chr(0x4E00 + i % 7) * 5}", i // 50, 0, 0) for i in range(3000)]
    near = NearConfig(method=method, window=Window(3), parts=PARTS, share=2)  # type: ignore[arg-type]
    config = SieveConfig(ExactConfig("bloom", 0.01, Window(3)), near)
    batch = batch_of(rows)
    assert judged(config, batch, 3000) == judged(config, batch, 1)


@settings(max_examples=examples(60))
@given(ROWS, _configs(), st.integers(0, 60), st.sampled_from([1, 2]))
def test_a_query_judges_each_row_as_the_next_one_and_changes_no_later_verdict(
    rows: Rows, config: SieveConfig, size: int, threads: int
) -> None:
    config = replace(config, near=replace(config.near, threads=threads))
    batch = batch_of(rows, scoped=config.scoped)
    untimed = replace(batch, times_ms=np.full(len(batch), NO_TIME))
    sieve, twin = BatchSieve(config), BatchSieve(config)
    for each in (sieve, twin):
        each.judge(batch.slice(0, min(size, len(batch))))
    saved = to_bytes(sieve)
    expected = []
    for row in range(len(batch)):
        copy = from_bytes(saved, config)
        expected += table(copy.judge(untimed.slice(row, row + 1)))
    assert table(sieve.query(batch)) == expected
    later = batch.slice(min(size, len(batch)), len(batch))
    assert table(sieve.judge(later)) == table(twin.judge(later))
