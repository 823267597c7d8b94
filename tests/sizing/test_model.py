"""The cost model against arithmetic written out once more, and against real sieves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sizing.posts import batches
from tests.stored import storage_at
from twinsieve.pipeline.saved import piece_bytes as policy
from twinsieve.pipeline.saved.journal import Journal
from twinsieve.pipeline.saved.kept_file import record_of
from twinsieve.pipeline.saved.manifest import Holds
from twinsieve.pipeline.saved.piece_bytes import piece_bytes
from twinsieve.pipeline.settings.segment_bytes import Texts, hot_bytes, segment_parts
from twinsieve.pipeline.sizing.estimate import Load, estimate, judging_us, memory_of
from twinsieve.stages.contract import BandLayout, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve, worst_case_bytes
from twinsieve.stages.judge.kept_messages import KeptMessages

_GIB = 1 << 30
_NEAR = NearConfig(window=Window(50_000_000), segment=8_000_000)


def test_a_cut_window_costs_what_arithmetic_says() -> None:
    """Eight segments: the open one, one that is written, and six whose index fits into memory for some."""
    config = SieveConfig(ExactConfig("none"), _NEAR, layout=BandLayout(bands=24, rows=4))
    load = Load(5_000, 0.4, Texts(60), 8 * _GIB, 300, 2)
    costs = estimate(config, load)
    buckets = round(8_000_000 / 8.4)
    hot = 64 * (24 * buckets + buckets // 2) + 4 * 2**24 + 8 * 8_000_000
    texts = segment_parts(config, Texts(60))["texts"]
    segment = hot + 8_000_000 * 64 + texts
    in_memory = (8 * _GIB - 2 * segment) // hot
    assert in_memory == 1
    assert costs.memory.anonymous == {
        "open segment": segment,
        "segment that is being written": segment,
        "index of sealed segments": hot,
        "exact stage": 0,
    }
    assert (costs.memory.hot, costs.memory.cold) == (5 * hot, 6 * (segment - hot))
    assert costs.memory.needed == 2 * segment + 6 * hot
    # The longest texts: 512 characters, a sketch, word starts, a tally and a granule, in units of two bytes.
    longest = hot + 8_000_000 * (64 + 2 * (512 + 32 + 32 + 4 + 4))
    assert costs.worst_memory.anonymous["open segment"] == longest
    assert costs.worst_memory.anonymous["index of sealed segments"] == 0
    kept_an_hour = 5_000 * 0.6 * 3_600
    piece = piece_bytes(config, Texts(60))
    # Three snapshots pass until no snapshot that is kept needs the pieces of a segment.
    assert costs.disk == {
        "pieces": round(1.25 * piece * (8_000_000 + 3 * 300 * 3_000)),
        "segments": 8 * segment,
        "exact stage": 2 * 65_536,
    }
    assert costs.written == {
        "pieces": round(kept_an_hour * piece),
        "merges": 0,
        "segments": round(kept_an_hour * segment / 8_000_000),
        "exact stage": 0,
        "snapshots": 12 * 65_536,
    }
    assert costs.hours == pytest.approx(50_000_000 / (5_000 * 0.6) / 3_600)
    assert costs.busy == pytest.approx(costs.us * 5_000 / 1e6)


def test_a_window_of_one_segment_has_no_files_and_merges_where_snapshots_are_small() -> None:
    config = SieveConfig(ExactConfig(window=Window(10_000_000)), NearConfig(window=Window(1_000_000, 60_000)))
    costs = estimate(config, Load(100, 0.0, Texts(60), None, 60, 3))
    bloom = worst_case_bytes(config)["bloom"]
    segment = sum(segment_parts(config, Texts(60)).values())
    assert costs.memory.anonymous == {"open segment": segment, "exact stage": bloom}
    assert (costs.memory.hot, costs.memory.cold) == (0, 0)
    # Sixteen pieces of 6,000 messages are merged into one of 96,000; sixteen of those are more than a window.
    piece = piece_bytes(config, Texts(60))
    assert costs.written["pieces"] == round(360_000 * piece)
    assert costs.written["merges"] == costs.written["pieces"]
    assert costs.written["exact stage"] == round(360_000 * bloom / 10_000_000)
    # 6,000 new keys of ten bytes.
    assert costs.written["snapshots"] == 60 * (60_000 + 65_536)
    assert costs.disk == {
        "pieces": round(1_250_000 * piece),
        "merge, while it runs": round(1_000_000 * piece),
        "exact stage": bloom + 3 * (60_000 + 65_536),
    }
    assert costs.hours == 60 / 3600


@given(
    st.integers(1, 200_000_000),
    st.integers(1, 16_000_000),
    st.one_of(st.none(), st.integers(1, 1 << 38)),
    st.integers(8, 64),
)
def test_what_is_held_hot_never_passes_the_setting(
    window: int, segment: int, memory: int | None, bands: int
) -> None:
    near = NearConfig(window=Window(window), segment=segment)
    config = SieveConfig(ExactConfig("none"), near, layout=BandLayout(bands=bands))
    parts = segment_parts(config, Texts())
    held = memory_of(config, memory, parts, 0)
    always = sum(parts.values()) * (1 if window <= segment else 2)
    assert held.total <= max(always, memory or 0)
    assert held.total >= always
    if window > segment:
        sealed = -(-window // segment) - 1
        assert held.total + held.hot == always + sealed * hot_bytes(parts)
        # A further segment would not fit.
        assert memory is None or not held.hot or held.total + hot_bytes(parts) > memory


@given(st.integers(10_000, 100_000_000), st.integers(1, 20), st.floats(8, 400))
def test_a_segment_more_a_longer_text_and_more_look_ups_each_take_time(
    segment: int, sealed: int, characters: float
) -> None:
    segment = min(segment, 16_000_000)

    def us(sealed: int, characters: float, bands: int) -> float:
        near = NearConfig(window=Window(segment * sealed or segment), segment=segment)
        return judging_us(SieveConfig(near=near, layout=BandLayout(bands=bands)), Texts(characters))

    here = us(sealed, characters, 28)
    assert us(sealed + 1, characters, 28) > here > 0
    assert us(sealed, characters + 10, 28) > here
    assert us(sealed, characters, 38) > here > us(sealed, characters, 24)


def test_the_policy_of_pieces_is_that_of_the_journal(tmp_path: Path) -> None:
    held = Journal(storage_at(str(tmp_path)), "", 10_000_000)
    try:
        assert held._piece_messages == policy.piece_messages(10_000_000, 1e12)
    finally:
        held.close()


def _kept(sieve: BatchSieve, count: int, joined: int) -> KeptMessages:
    """All messages that a sieve keeps, until these are `count` or more."""
    kept: list[KeptMessages] = []
    sieve.on_kept = lambda _, messages: kept.append(messages)
    for batch in batches(sieve.config.layout, joined):
        sieve.judge(batch)
        if sieve.stats().kept >= count:
            return KeptMessages.concat(kept)
    raise AssertionError("too few posts")


@pytest.mark.parametrize("joined", [1, 2, 4])
def test_bytes_of_a_piece_are_within_a_tenth(joined: int) -> None:
    config = SieveConfig(ExactConfig("none"), NearConfig(window=Window(20_000)))
    kept = _kept(BatchSieve(config), 20_000, joined).take(np.arange(8_192, 8_192 + 4_096))
    texts = Texts(float(np.abs(kept.lengths).mean()))
    assert piece_bytes(config, texts) == pytest.approx(len(record_of(0, kept).data) / 4_096, rel=0.1)


@pytest.mark.matrix
@pytest.mark.parametrize("joined", [1, 4])
@pytest.mark.parametrize("layout", [BandLayout(), BandLayout(bands=24, rows=4, tables=3)])
def test_bytes_of_segments_are_within_a_tenth(layout: BandLayout, joined: int, tmp_path: Path) -> None:
    """In memory, and as files that are mapped."""
    near = NearConfig(window=Window(20_000), segment=5_000, same_id="pass")
    config = SieveConfig(ExactConfig("none"), near, layout=layout, scoped=True)
    sieve = BatchSieve(config)
    held = Journal(storage_at(str(tmp_path)), "", 20_000)
    sieve.seal_into(held.write_segment)
    kept = _kept(sieve, 22_000, joined)
    held.segments.wait()
    texts = Texts(float(np.abs(kept.lengths).mean()))
    predicted = sum(segment_parts(config, texts).values())
    try:
        files = [file for file in held._files if file.holds is Holds.SEGMENT and file.end > 5_000]
        assert len(files) >= 3
        for file in files:
            assert file.size == pytest.approx(predicted, rel=0.1)
    finally:
        held.close()
    (newest, *_) = sieve.near.segments.sealed[::-1]
    assert newest.bytes_hot == hot_bytes(segment_parts(config, texts))
    whole = BatchSieve(replace(config, near=replace(near, segment=20_000)))
    _kept(whole, 20_000, joined)
    predicted = sum(segment_parts(whole.config, texts).values())
    assert whole.stats().bytes_used == pytest.approx(predicted, rel=0.12)


def test_a_sieve_holds_as_many_indexes_in_memory_as_is_said(tmp_path: Path) -> None:
    """At the moment in which a segment is sealed, and the other ones are full."""
    near = NearConfig(window=Window(30_000), segment=5_000)
    config = SieveConfig(ExactConfig("none"), near)
    texts = Texts(58)
    parts = segment_parts(config, texts)
    memory = 2 * sum(parts.values()) + 3 * hot_bytes(parts) + hot_bytes(parts) // 2
    sieve = BatchSieve(replace(config, near=replace(near, memory=memory)))
    held = Journal(storage_at(str(tmp_path)), "", 30_000)
    sieve.seal_into(held.write_segment)
    try:
        _kept(sieve, 50_000, 1)
        held.segments.wait()
        segments = sieve.near.segments
        segments.use_files()
        in_memory = [segment for segment in segments.sealed if segment.holds_memory]
        predicted = memory_of(sieve.config, memory, parts, 0)
        assert predicted.anonymous["index of sealed segments"] == 3 * hot_bytes(parts)
        # One more where the texts of the open segment were short then, and the one that was written last.
        assert 3 <= len(in_memory) <= 5
        assert in_memory == segments.sealed[-len(in_memory) :]
        assert segments.bytes_used <= memory
        assert predicted.total <= memory
    finally:
        held.close()


def test_merges_write_as_many_bytes_as_is_said(tmp_path: Path) -> None:
    """Eighty saves, each after 1,000 kept messages: every message is merged once."""
    config = SieveConfig(ExactConfig("none"), NearConfig(window=Window(40_000)))
    sieve = BatchSieve(config)
    held = Journal(storage_at(str(tmp_path)), "", 40_000)
    characters = saves = kept = 0

    def take(first: int, messages: KeptMessages) -> None:
        nonlocal characters
        characters += int(np.abs(messages.lengths).sum())
        held.take(first, messages)

    sieve.on_kept = take
    for batch in batches(config.layout, 1):
        for low in range(0, len(batch), 128):
            sieve.judge(batch.take(np.arange(low, min(low + 128, len(batch)))))
            kept = sieve.stats().kept
            if kept < 1_000 * (saves + 1):
                continue
            saves += 1
            files = held.write(held.cut(sieve.freeze()))
            held.announced(files, {file.name for file in files})
        if saves >= 80:
            break
    held.close()
    load = Load(1.0, 0.0, Texts(characters / kept), snapshot_s=kept / saves)
    written = estimate(config, load).written
    assert written["merges"] == written["pieces"]
    assert held.written == pytest.approx((written["pieces"] + written["merges"]) * kept / 3_600, rel=0.1)
