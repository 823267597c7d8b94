"""The sieve, with every pair a candidate, says what the plain loop says: kind, flags, leader, similarity."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.property.streams import DIFFERENCES, PARTS, ROWS, Rows, batch_of, judged, told_by_oracle
from twinsieve.stages.contract import NO_TIME, Batch, ExactConfig, NearConfig, SieveConfig, TimeConfig, Window

_AGES = st.one_of(st.none(), st.integers(0, 60_000))
_WINDOWS = st.builds(Window, st.integers(1, 40), _AGES)
_TIMES = st.builds(TimeConfig, late=st.sampled_from(["insert", "judge"]), late_after_ms=st.just(20_000))


def _near(method: str) -> st.SearchStrategy[NearConfig]:
    return st.builds(
        NearConfig,
        method=st.just(method),
        similarity=st.sampled_from([7_000, 8_500, 9_500, 10_000]),
        window=_WINDOWS,
        differences=DIFFERENCES,
        same_id=st.sampled_from(["drop", "pass"]),
        # By bits, tables find all; by text, an index finds most.
        candidates=st.sampled_from(["scan", "index"]) if method == "hamming" else st.just("scan"),
        parts=st.just(PARTS),
        share=st.integers(1, PARTS),
        distances=st.sampled_from([((8, 3),), ((8, 7), (20, 3)), ((0, 0), (10, 5))]),
    )


_SCANNED = st.builds(
    NearConfig,
    method=st.just("hamming"),
    window=_WINDOWS,
    same_id=st.sampled_from(["drop", "pass"]),
    candidates=st.just("scan"),
    distances=st.sampled_from([((8, 10), (14, 3)), ((0, 8), (10, 12)), ((12, 12),)]),
    threads=st.sampled_from([1, 2]),
)


@pytest.mark.parametrize("method", ["text", "hamming", "signatures"])
@settings(max_examples=examples(75))
@given(ROWS, st.data(), _WINDOWS, _TIMES, st.booleans(), st.sampled_from([1, 7, 1000]))
def test_near_stages_equal_the_plain_loop(
    method: str,
    rows: Rows,
    data: st.DataObject,
    exact: Window,
    time: TimeConfig,
    scoped: bool,
    size: int,
) -> None:
    near = data.draw(_near(method))
    config = SieveConfig(ExactConfig("trie", window=exact), near, time, scoped=scoped)
    batch = batch_of(rows, scoped=scoped)
    assert judged(config, batch, size) == told_by_oracle(config, batch)


@settings(max_examples=examples(75))
@given(ROWS, _SCANNED, _TIMES, st.booleans(), st.sampled_from([1, 7, 1000]))
def test_a_scan_by_bits_equals_the_plain_loop_beyond_the_reach_of_tables(
    rows: list[tuple[str, int | None, int, int]], near: NearConfig, time: TimeConfig, scoped: bool, size: int
) -> None:
    config = SieveConfig(ExactConfig("none"), near, time, scoped=scoped)
    batch = batch_of(rows, scoped=scoped)
    assert judged(config, batch, size) == told_by_oracle(config, batch)


@settings(max_examples=examples(40))
@given(ROWS, _WINDOWS, _TIMES, st.sampled_from(["bloom", "trie"]), st.sampled_from([1, 1000]))
def test_exact_stage_alone_equals_the_plain_loop_inside_the_ring(
    rows: Rows,
    exact: Window,
    time: TimeConfig,
    method: str,
    size: int,
) -> None:
    near = NearConfig(method="none", window=Window(exact.messages))
    config = SieveConfig(ExactConfig(method, 0.01, exact), near, time)  # type: ignore[arg-type]
    batch = batch_of(rows)
    assert judged(config, batch, size) == told_by_oracle(config, batch)


_STREAMS = st.one_of(
    st.lists(st.integers(0, 20), min_size=60, max_size=60),
    st.lists(st.none() | st.integers(0, 100), min_size=60, max_size=60),
)
"""Stream time in s that the caller decides for each row; None: the row's own time moves it. Times go up to 80 s:
with low stream times most rows are ahead."""


def _decided(rows: Rows, streams: list[int | None]) -> Batch:
    batch = batch_of(rows)
    batch.stream_ms[:] = [NO_TIME if each is None else each * 1000 for each in streams[: len(rows)]]
    return batch


@pytest.mark.parametrize("method", ["text", "hamming", "signatures"])
@settings(max_examples=examples(50))
@given(ROWS, st.data(), _WINDOWS, _TIMES, _STREAMS, st.sampled_from([1, 7, 1000]))
def test_rows_ahead_of_a_stream_time_that_is_given_equal_the_plain_loop(
    method: str,
    rows: Rows,
    data: st.DataObject,
    exact: Window,
    time: TimeConfig,
    streams: list[int | None],
    size: int,
) -> None:
    config = SieveConfig(ExactConfig("trie", window=exact), data.draw(_near(method)), time)
    batch = _decided(rows, streams)
    assert judged(config, batch, size) == told_by_oracle(config, batch)


@settings(max_examples=examples(300))
@given(ROWS, _WINDOWS, _TIMES, _STREAMS, st.sampled_from(["bloom", "trie"]), st.sampled_from([1, 1000]))
def test_the_exact_stage_alone_equals_it_too(
    rows: Rows,
    exact: Window,
    time: TimeConfig,
    streams: list[int | None],
    method: str,
    size: int,
) -> None:
    near = NearConfig(method="none", window=Window(exact.messages))
    config = SieveConfig(ExactConfig(method, 0.01, exact), near, time)  # type: ignore[arg-type]
    batch = _decided(rows, streams)
    assert judged(config, batch, size) == told_by_oracle(config, batch)
