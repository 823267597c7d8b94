"""A window of several segments is one window: verdicts are those of the plain loop and of one ring.

Segments have a few messages, so that windows, chunks, copies and loads cross their boundaries all the time.
`candidates: scan` meets every message of a segment, so that no bucket overflow explains a difference; what
buckets do is compared where none overflows.
"""

from __future__ import annotations

import random
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.generated_posts import generate
from tests.property.streams import DIFFERENCES, ROWS, Row, Rows, batch_of, judged, table, told_by_oracle
from tests.whole_state import from_bytes, to_bytes
from twinsieve.stages.contract import (
    FULL,
    GUARDS,
    MAX_WINDOW,
    OFF,
    Batch,
    Differences,
    ExactConfig,
    Flag,
    Kind,
    NearConfig,
    SieveConfig,
    TimeConfig,
    Window,
)
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge import near_window as stage
from twinsieve.stages.judge.batch_sieve import BatchSieve, worst_case_bytes
from twinsieve.stages.judge.near_window import near_bytes, segment_count
from twinsieve.stages.window import buckets
from twinsieve.stages.window.buckets import WAYS

ONE_RING = 16_000_000
_AGES = st.one_of(st.none(), st.integers(0, 60_000))


@st.composite
def _configs(draw: st.DrawFn) -> SieveConfig:
    exact, age_ms = draw(st.sampled_from(["trie", "bloom"])), draw(_AGES)
    return SieveConfig(
        # So low an error rate that no key is found that was never kept.
        ExactConfig(exact, 1e-9, Window(draw(st.integers(1, 60)), age_ms)),  # type: ignore[arg-type]
        NearConfig(
            similarity=draw(st.sampled_from([7_000, 8_500])),
            window=Window(draw(st.integers(1, 50)), draw(_AGES)),
            differences=draw(DIFFERENCES),
            same_id=draw(st.sampled_from(["drop", "pass"])),
            candidates="scan",
            segment=draw(st.integers(1, 9)),
            details=True,
        ),
        TimeConfig(late=draw(st.sampled_from(["insert", "judge"])), late_after_ms=20_000),
        scoped=draw(st.booleans()),
    )


def _one_ring(config: SieveConfig) -> SieveConfig:
    return replace(config, near=replace(config.near, segment=ONE_RING))


def _told(config: SieveConfig, batch: Batch, size: int) -> tuple[list[Row], list[list[list[int]]]]:
    """Verdicts, and what differs where a rule keeps two apart, in batches of `size`."""
    sieve = BatchSieve(config)
    rows: list[Row] = []
    details: list[list[list[int]]] = []
    for low in range(0, len(batch), size):
        verdicts = sieve.judge(batch.slice(low, min(low + size, len(batch))))
        rows += table(verdicts)
        details += [verdicts.details[row].tolist() if row >= 0 else [] for row in verdicts.detail_rows]
    return rows, details


@settings(max_examples=examples(75))
@given(ROWS, _configs(), st.sampled_from([1, 7, 1000]))
def test_segments_judge_like_the_plain_loop(rows: Rows, config: SieveConfig, size: int) -> None:
    config = replace(config, exact=replace(config.exact, method="trie"))
    batch = batch_of(rows * 2, scoped=config.scoped)
    assert judged(config, batch, size) == told_by_oracle(config, batch)


@settings(max_examples=examples(75))
@given(ROWS, _configs(), st.sampled_from([1, 7, 1000]), st.sampled_from([0, 1, 16]), st.sampled_from([1, 3]))
def test_segments_judge_like_one_ring(
    rows: Rows, config: SieveConfig, size: int, room: int, threads: int
) -> None:
    """With what differs, with the Bloom filter, and where there is no room for what phase one proposes."""
    batch = batch_of(rows * 2, scoped=config.scoped)
    cut = replace(config, near=replace(config.near, threads=threads))
    with patch.object(stage, "MATCHES_PER_ROW", room), patch.object(stage, "_WORTH_THREADS", 1):
        found = _told(cut, batch, size)
    assert found == _told(_one_ring(config), batch, 1000)


@settings(max_examples=examples(40))
@given(ROWS, _configs(), st.lists(st.integers(0, 120), max_size=4), st.lists(st.integers(0, 20), max_size=6))
def test_segments_forget_load_and_follow_like_one_ring(
    rows: Rows, config: SieveConfig, cuts: list[int], picks: list[int]
) -> None:
    """At each cut, messages of any segment are forgotten, and the sieve is saved and loaded."""
    batch = batch_of(rows * 2, scoped=config.scoped)
    tags = batch.fingerprints.digests[:, 0] ^ batch.scopes
    cut, follower, ring = BatchSieve(config), BatchSieve(config), BatchSieve(_one_ring(config))
    follower.judged_by = follower.rules
    kept: list[int] = []
    ends = [*sorted(min(each, len(batch)) for each in cuts), len(batch)]
    for low, high in zip([0, *ends[:-1]], ends, strict=True):
        part = batch.slice(low, high)
        verdicts = cut.judge(part)
        follower.apply(part, verdicts)
        assert table(verdicts) == table(ring.judge(part))
        is_kept = (verdicts.kinds == Kind.UNIQUE) & (verdicts.flags & int(Flag.LATE) == 0)
        kept += (np.flatnonzero(is_kept) + low).tolist()
        gone = np.array([kept[-1 - pick] for pick in picks if pick < len(kept)], np.int64)
        for each in (cut, follower, ring):
            each.forget(batch.positions[gone], tags[gone])
        assert to_bytes(follower) == to_bytes(cut)
        cut = from_bytes(to_bytes(cut), config)
        assert replace(cut.stats(), bytes_used=0, segments=1) == replace(ring.stats(), bytes_used=0)


def _long_stream(rng: random.Random, count: int) -> Rows:
    """Edits of a few sentences that come back all the time, with numbers, ids, scopes and late times."""

    def words(length: int) -> str:
        return "".join(chr(0x4E00 + rng.randrange(400)) for _ in range(length))

    sentences = [words(rng.randint(9, 30)) for _ in range(20)]
    rows: Rows = []
    for second in range(count):
        text = rng.choice(sentences)
        place = rng.randrange(len(text))
        edit = rng.choice(["", "", "吧", words(2), f"{rng.randrange(3)}例"])
        if rng.random() < 0.2:
            sentences[rng.randrange(20)] = words(rng.randint(9, 30))
        time = None if rng.random() < 0.1 else second // 5 - rng.choice([0, 0, 0, 30])
        rows.append((text[:place] + edit + text[place:], time, rng.randint(0, 2), int(rng.random() < 0.1)))
    return rows


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(12))
def test_long_streams_cross_segments_all_the_time(seed: int) -> None:
    rng = random.Random(seed)
    age_ms = rng.choice([None, None, 20_000])
    near = NearConfig(
        similarity=rng.choice([7_000, 8_500]),
        window=Window(rng.randint(30, 90), age_ms),
        differences=rng.choice([Differences(OFF), Differences(GUARDS), Differences(FULL)]),
        same_id=rng.choice(["drop", "pass"]),  # type: ignore[arg-type]
        candidates="scan",
        segment=rng.randint(3, 12),
        details=True,
        threads=rng.choice([1, 3]),
    )
    config = SieveConfig(
        # Also smaller than the near window, so that copies are near and not exact.
        ExactConfig(rng.choice(["trie", "bloom"]), 1e-9, Window(rng.choice([20, 60, 400]), age_ms)),  # type: ignore[arg-type]
        near,
        TimeConfig(late=rng.choice(["insert", "judge"]), late_after_ms=20_000),  # type: ignore[arg-type]
        scoped=rng.random() < 0.5,
    )
    batch = batch_of(_long_stream(rng, 500), scoped=config.scoped)
    expected = _told(_one_ring(config), batch, 1_000)
    if config.exact.method == "trie":
        assert expected[0] == told_by_oracle(config, batch)
    for room, size in ((0, 61), (1, 1_000), (16, 7), (16, 1)):
        with patch.object(stage, "MATCHES_PER_ROW", room), patch.object(stage, "_WORTH_THREADS", 1):
            assert _told(config, batch, size) == expected
    kinds = [row[0] for row in expected[0]]
    assert kinds.count(Kind.UNIQUE) > 10 * near.segment
    assert kinds.count(Kind.NEAR) > 10


@pytest.mark.matrix
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_crowded_buckets_of_segments_give_one_answer(
    seed: int, keyed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the batches, the threads, and the moments of a save and a load.

    keyed: entries have bits of their keys, as in tables of hundreds of thousands
    """
    if keyed:
        monkeypatch.setattr(buckets, "KEYED_FROM", 1)
    rng = random.Random(seed)
    near = NearConfig(
        similarity=rng.choice([7_000, 8_500]),
        window=Window(rng.randint(30, 90), rng.choice([None, 20_000])),
        bucket_load=rng.choice([8.4, 40.0]),
        segment=rng.randint(3, 40),
        details=True,
    )
    config = SieveConfig(ExactConfig("bloom", 1e-9, Window(rng.choice([20, 400]))), near)
    batch = batch_of(_long_stream(rng, 500))
    expected = _told(config, batch, 1_000)
    for room, size, threads in ((0, 61, 1), (1, 7, 3), (16, 1, 1)):
        threaded = replace(config, near=replace(near, threads=threads))
        with patch.object(stage, "MATCHES_PER_ROW", room), patch.object(stage, "_WORTH_THREADS", 1):
            assert _told(threaded, batch, size) == expected
    sieve, follower = BatchSieve(config), BatchSieve(config)
    follower.judged_by = follower.rules
    rows: list[Row] = []
    for low in range(0, len(batch), 37):
        part = batch.slice(low, min(low + 37, len(batch)))
        verdicts = sieve.judge(part)
        follower.apply(part, verdicts)
        rows += table(verdicts)
        saved = to_bytes(sieve)
        assert to_bytes(follower) == saved
        sieve = from_bytes(saved, config)
    assert rows == expected[0]


def _fillers(count: int) -> Rows:
    return [(f"第{number}条{chr(0x4E00 + 97 * number) * 9}各不相同", None, 0, 0) for number in range(count)]


def test_what_differs_from_a_message_in_a_sealed_segment_is_shown() -> None:
    rows = [
        ("新增确诊12例请大家注意防护", None, 0, 0),
        *_fillers(9),
        ("新增确诊15例请大家注意防护", None, 0, 0),
    ]
    for candidates in ("scan", "index"):
        near = NearConfig(window=Window(50), segment=4, candidates=candidates, details=True)  # type: ignore[arg-type]
        sieve = BatchSieve(SieveConfig(near=near))
        for number in range(len(rows)):
            verdicts = sieve.judge(batch_of(rows).slice(number, number + 1))
        assert (verdicts.kinds[0], verdicts.apart_from[0]) == (Kind.UNIQUE, 100)
        shown = ["".join(map(chr, side[side > 0])) for side in verdicts.details[verdicts.detail_rows[0]]]
        assert shown == ["12", "15"]


def test_a_later_copy_in_a_sealed_segment_stays_a_leader_where_the_first_is_forgotten() -> None:
    """The two have the same id and lie further apart than the exact window, so both are kept."""
    post = ("今天天气很好我们一起出去玩吧", None, 1, 0)
    more = _fillers(50)
    batch = batch_of([post, *more[:40], post, *more[40:], post])
    near = NearConfig(window=Window(100), segment=6, candidates="scan", same_id="pass")
    for segment in (6, ONE_RING):
        sieve = BatchSieve(
            SieveConfig(ExactConfig("trie", window=Window(30)), replace(near, segment=segment))
        )
        first = sieve.judge(batch.slice(0, len(batch) - 1))
        assert not first.kinds.any()
        sieve.forget(batch.positions[:1], batch.fingerprints.digests[:1, 0])
        last = sieve.judge(batch.slice(len(batch) - 1, len(batch)))
        assert (last.kinds.tolist(), last.leaders.tolist()) == ([Kind.EXACT], [100 + 41])


def _posts(count: int, seed: int) -> Rows:
    return [(post["text"], None, 0, 0) for post in generate(count, seed)]


def test_buckets_of_segments_find_what_the_buckets_of_one_ring_find() -> None:
    """Both have the same number of buckets, and none is ever full."""
    window, segment, load = 1_000, 50, 0.05
    ring = SieveConfig(
        ExactConfig("trie"),
        NearConfig(window=Window(window), bucket_load=load, differences=Differences(FULL)),
    )
    cut = replace(ring, near=replace(ring.near, segment=segment, bucket_load=load * segment / window))
    batch = batch_of(_posts(4_000, 9))
    one, several = BatchSieve(ring), BatchSieve(cut)
    expected = one.judge(batch)
    # A bucket holds old entries until newer ones push them out, so most become full in time; of the newest
    # messages, none has lost its place.
    assert one.pushed_out(99) == 0
    assert (expected.kinds == Kind.NEAR).sum() > 100
    for low in range(0, len(batch), 700):
        part = several.judge(batch.slice(low, min(low + 700, len(batch))))
        assert table(part) == table(expected.slice(low, min(low + 700, len(batch))))
    segments = several.near.segments
    assert len(segments.sealed) == window // segment
    assert (
        max(len(np.flatnonzero(row)) for row in segments.sealed[0].table.entries().reshape(-1, WAYS)) < WAYS
    )


def test_pushed_out_messages_are_counted_in_all_segments() -> None:
    config = SieveConfig(near=NearConfig(window=Window(900), segment=100, bucket_load=60.0))
    sieve = BatchSieve(config)
    sieve.judge(batch_of(_posts(3_000, 2)))
    segments = sieve.near.segments.all
    half = config.layout.bands // 2
    counts = [sieve.pushed_out(half) for _ in segments for _ in range(2)]
    assert counts[:-1] == [0] * (2 * len(segments) - 1)
    alone = [segment.pushed_out.messages for segment in segments]
    assert counts[-1] == sum(alone)
    assert sum(count > 0 for count in alone) >= 8
    assert sieve.pushed_out(config.layout.bands) == sum(alone), "all in one call"


def test_a_window_holds_no_more_segments_than_it_needs() -> None:
    config = SieveConfig(near=NearConfig(window=Window(1_000), segment=300))
    sieve = BatchSieve(config)
    batch = batch_of(_posts(4_000, 3))
    most = 0
    for low in range(0, len(batch), 500):
        sieve.judge(batch.slice(low, low + 500))
        segments = sieve.near.segments
        most = max(most, len(segments.all))
        assert all(segment.ring.size for segment in segments.sealed)
        assert segments.size == sum(segment.ring.size for segment in segments.all)
    assert most == 5
    assert sieve.stats().held == sieve.stats().capacity == 1_000
    assert sieve.near.bytes_used <= sum(near_bytes(config, segment_count(config)).values())


def test_the_worst_memory_has_the_hot_arrays_that_fit_into_the_setting() -> None:
    near = NearConfig(window=Window(1_000), segment=100)
    alone = sum(worst_case_bytes(SieveConfig(near=near)).values())

    def worst(memory: int) -> int:
        return sum(worst_case_bytes(SieveConfig(near=replace(near, memory=memory))).values())

    near_alone = alone - worst_case_bytes(SieveConfig(near=near))["bloom"]
    assert worst(near_alone) == alone
    assert worst(near_alone + 999) == alone + 999
    sieve = BatchSieve(SieveConfig(near=near))
    sieve.judge(batch_of(_posts(300, 3)))
    hot = sieve.near.segments.sealed[0].bytes_hot
    assert worst(1 << 40) == alone + (segment_count(SieveConfig(near=near)) - 2) * hot


def test_a_state_of_another_segment_size_is_refused_with_what_to_do() -> None:
    near = NearConfig(window=Window(50), segment=20)
    saved = to_bytes(BatchSieve(SieveConfig(near=near)))
    with pytest.raises(
        StateError, match=r"near\.segment=20, the configuration says near\.segment=10; set it"
    ):
        from_bytes(saved, SieveConfig(near=replace(near, segment=10)))


@pytest.mark.parametrize("exact", ["trie", "bloom"])
@pytest.mark.parametrize("first", [2**32 - 37, 2 * MAX_WINDOW])
def test_kept_indices_beyond_32_bits_are_numbers_like_any(first: int, exact: str) -> None:
    """In segments, in the exact stage, forgotten ones, and in a saved state."""
    near = NearConfig(window=Window(50), segment=7, candidates="scan", details=True)
    config = SieveConfig(ExactConfig(exact, 1e-9, Window(80)), near)  # type: ignore[arg-type]
    batch = batch_of(_long_stream(random.Random(7), 300))
    tags = batch.fingerprints.digests[:, 0]
    late, early = BatchSieve(config), BatchSieve(config)
    late.near.segments.begin_at(first)
    for low in range(0, len(batch), 30):
        part = batch.slice(low, low + 30)
        verdicts = early.judge(part)
        assert table(late.judge(part)) == table(verdicts)
        gone = np.flatnonzero(verdicts.kinds == Kind.UNIQUE)[-3:-1] + low
        for each in (late, early):
            each.forget(batch.positions[gone], tags[gone])
        late = from_bytes(to_bytes(late), config)
    assert late.stats().kept == first + early.stats().kept
    assert late.sealed_ids()[0].end > 2**32
