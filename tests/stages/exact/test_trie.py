"""The tiers of the trie method against a plain list of all kept messages: the newest entry, exactly."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.examples import examples
from twinsieve.stages.contract import NO_LEADER, NO_TIME, Window
from twinsieve.stages.errors import StateError
from twinsieve.stages.exact.packed import PackedColumn
from twinsieve.stages.exact.sections import SectionReader
from twinsieve.stages.exact.trie import TierSizes, TrieTiers, tier_sizes
from twinsieve.stages.exact.trie_head import Entries
from twinsieve.stages.exact.trie_tier import SealedTier, tier_from_sections, tier_to_sections

_HALF = 0xAABBCCDD_00112233
_ALIKE = [(_HALF, 1), (_HALF, 2), (_HALF + 1, 1), (_HALF + 1, 2), (_HALF ^ 2**31, 1)]
"""Equal in the first 4 bytes, some in the whole first half, some in the second."""
_EXTREME = [(0, 0), (0, 1), (1, 0), (2**64 - 1, 2**64 - 1), (0, 2**64 - 1), (2**63, 0)]
_PLAIN = [(number * 0x9E3779B97F4A7C15 % 2**64, number) for number in range(2, 14)]
_POOL = np.array(_ALIKE + _EXTREME + _PLAIN, dtype=np.uint64)


@dataclass
class _Story:
    """The tiers, and beside them every message ever kept as (key, position, kept index, time)."""

    window: Window
    tiers: TrieTiers
    entries: list[tuple[int, int, int, int]] = field(default_factory=list)
    now: int = 0

    def keep(self, keys: list[int], gap_ms: int) -> None:
        added = []
        for key in keys:
            kept = len(self.entries)
            self.now += gap_ms
            added.append((key, kept * 7 - 1_000, kept, self.now))
            self.entries.append(added[-1])
        columns = [np.array(column, dtype=np.int64) for column in zip(*added, strict=True)]
        self.tiers.add(_POOL[columns[0]], *columns[1:])

    def move(self, ms: int) -> None:
        self.now += ms
        self.tiers.expire(len(self.entries), self.now)

    def play(self, steps: list[tuple[str, list[int], int]]) -> None:
        for what, keys, ms in steps:
            if what == "keep" and keys:
                self.keep(keys, ms % 5)
            else:
                self.move(ms)

    def check(self) -> None:
        found, leaders, kept, times = self.tiers.find(_POOL)
        for key in range(len(_POOL)):
            newest = next((entry for entry in reversed(self.entries) if entry[0] == key), None)
            if found[key]:
                assert newest == (key, leaders[key], kept[key], times[key])
            else:
                assert (leaders[key], kept[key], times[key]) == (NO_LEADER, -1, NO_TIME)
                assert newest is None or not self.in_window(newest)

    def in_window(self, entry: tuple[int, int, int, int]) -> bool:
        if len(self.entries) - entry[2] > self.window.messages:
            return False
        return self.window.age_ms is None or self.now - entry[3] <= self.window.age_ms


_WINDOWS = st.builds(Window, st.integers(1, 60), st.one_of(st.none(), st.integers(0, 60)))
_SIZES = st.builds(TierSizes, st.integers(1, 5), st.integers(2, 4), st.integers(5, 40))
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["keep", "keep", "move"]),
        st.lists(st.integers(0, len(_POOL) - 1), min_size=1, max_size=12),
        st.integers(0, 40),
    ),
    max_size=14,
)


@settings(max_examples=examples(150), deadline=None)
@given(_WINDOWS, _SIZES, _STEPS)
def test_the_newest_entry_of_every_key_in_the_window_is_found(
    window: Window, sizes: TierSizes, steps: list[tuple[str, list[int], int]]
) -> None:
    story = _Story(window, TrieTiers(window, sizes))
    for step in steps:
        story.play([step])
        story.check()


def _random(count: int, seed: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 2**64, (count, 2), dtype=np.uint64)


def _filled(window: Window, digests: NDArray[np.uint64], chunk: int = 4_096) -> TrieTiers:
    tiers = TrieTiers(window)
    for start in range(0, len(digests), chunk):
        part = digests[start : start + chunk]
        kept = np.arange(start, start + len(part))
        tiers.add(part, kept * 11, kept, kept + 1_700_000_000_000)
    return tiers


def test_of_many_keys_present_and_absent_none_is_answered_wrongly() -> None:
    digests = _random(120_000, seed=1)
    tiers = _filled(Window(120_000), digests)
    assert len({tier.level for tier in tiers.tiers}) == 2
    kept = np.arange(120_000)
    found, leaders, kept_found, times = tiers.find(digests)
    assert found.all()
    assert (leaders == kept * 11).all()
    assert (kept_found == kept).all()
    assert (times == kept + 1_700_000_000_000).all()
    assert not tiers.find(_random(120_000, seed=2))[0].any()


def test_digests_forged_to_share_their_first_bytes_are_told_apart() -> None:
    digests = _random(20_000, seed=3)
    digests[:15_000, 0] = np.uint64(_HALF)
    digests[15_000:, 0] = np.uint64(_HALF) + np.arange(5_000, dtype=np.uint64) // 2
    tiers = _filled(Window(20_000), digests)
    found, leaders, _, _ = tiers.find(digests)
    assert found.all()
    assert (leaders == np.arange(20_000) * 11).all()
    absent = digests.copy()
    absent[:, 1] ^= np.uint64(1)
    assert not tiers.find(absent)[0].any()


def test_entries_that_the_caller_holds_may_be_left_out_and_no_others() -> None:
    digests = _random(5_000, seed=4)
    tiers = _filled(Window(5_000), digests)
    for before in (0, 1, 2_500, 4_999, 5_000):
        is_hit, leaders, *_ = tiers.find(digests, before)
        assert is_hit[:before].all()
        assert (leaders[is_hit] == tiers.find(digests)[1][is_hit]).all()
    assert not tiers.find(digests, 0)[0].any()


def test_memory_stays_below_what_was_announced_over_ten_windows() -> None:
    window = Window(20_000)
    digests = _random(200_000, seed=5)
    rng = np.random.default_rng(6)
    tiers = TrieTiers(window)
    for start in range(0, len(digests), 1_000):
        kept = np.arange(start, start + 1_000)
        anywhere = rng.integers(-(2**63), 2**63 - 1, 1_000)
        tiers.add(digests[start : start + 1_000], anywhere, kept, kept)
        assert len(tiers) <= window.messages + tiers.sizes.largest + tiers.sizes.head
        assert tiers.bytes_used <= TrieTiers.bytes_for(window)
    assert not tiers.find(digests[:170_000])[0].any()


def test_an_expired_head_is_forgotten_too() -> None:
    tiers = TrieTiers(Window(100, 1_000))
    tiers.add(_POOL[:1], np.array([5]), np.array([0]), np.array([10]))
    tiers.expire(1, 1_010)
    assert tiers.find(_POOL[:1])[0].tolist() == [True]
    tiers.expire(1, 1_011)
    assert tiers.find(_POOL[:1])[0].tolist() == [False]
    assert len(tiers) == 0


def test_a_state_of_another_window_is_refused_with_what_to_do() -> None:
    sections = TrieTiers(Window(100, 5_000)).freeze().whole()
    with pytest.raises(
        StateError, match=r"trie: saved with exact\.window\.age_ms 5000, the .* none; restore the"
    ):
        TrieTiers.from_sections(sections, Window(100))


def _sealed_sections() -> dict[str, NDArray[np.generic]]:
    sections = _filled(Window(4_000), _random(3_000, seed=7)).freeze().whole()
    assert "0.digests" in sections
    return sections


def _without(name: str) -> dict[str, NDArray[np.generic]]:
    sections = _sealed_sections()
    del sections[name]
    return sections


def _with(name: str, array: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
    return _sealed_sections() | {name: array}


def _twice(name: str) -> dict[str, NDArray[np.generic]]:
    array = _sealed_sections()[name].copy()
    array[0] = array[1]
    return _with(name, array)


@pytest.mark.parametrize(
    "damaged",
    [
        lambda: _without("clock"),
        lambda: _without("0.digests"),
        lambda: _without("1.level"),
        lambda: _without("run0.kept"),
        lambda: _with("0.digests", np.zeros((0, 2), dtype=np.uint64)),
        lambda: _with("0.digests", _sealed_sections()["0.digests"][:-9]),
        lambda: _with("0.digests", _sealed_sections()["0.digests"][::-1]),
        lambda: _twice("0.digests"),
        lambda: _with("0.filter", np.zeros(64, dtype=np.uint8)),
        lambda: _with("0.times.bases", np.zeros(3, dtype=np.int64)),
        lambda: _with("0.times.deltas", np.zeros((1_024, 9), dtype=np.uint8)),
        lambda: _twice("0.rows.deltas"),
        lambda: _with("run0.digests", np.zeros((5_000, 2), dtype=np.uint64)),
        lambda: _with("run0.kept", np.zeros(5_000, dtype=np.int64)),
        lambda: _with("clock", np.array([3_000, 0, -1])),
        lambda: _with("clock", np.array([2_000, 0, 2])),
        lambda: _with("1.level", np.array([7])),
        lambda: _twice("run0.kept"),
        lambda: _with("clock", np.array([3_000, 0, 10**12])),
    ],
)
def test_a_damaged_state_is_refused(damaged) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(StateError, match=r"^trie: .*; the state is damaged, begin with a new state"):
        TrieTiers.from_sections(damaged(), Window(4_000))


def test_a_tier_that_was_saved_as_a_trie_is_refused_with_what_to_do() -> None:
    with pytest.raises(StateError, match="an earlier version saved it in another format; begin with a new"):
        TrieTiers.from_sections(_with("0.trie", np.zeros(9, np.uint8)), Window(4_000))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1, unique=True))
def test_a_tier_of_a_file_answers_as_the_one_that_was_saved(parts: list[tuple[int, int, int]]) -> None:
    """Also where digests share their first 4 or 8 bytes, which somebody may have wanted."""
    digests = np.array([(first << 32 | low, second) for first, low, second in parts], np.uint64)
    kept = np.arange(len(digests))
    saved = SealedTier.of(0, Entries(digests, kept + 5, kept, kept))
    read = tier_from_sections(SectionReader("trie", tier_to_sections(saved)))
    every = np.array([(a << 32 | b, c) for a in range(5) for b in range(5) for c in range(5)], np.uint64)
    assert read.find(every).tolist() == saved.find(every).tolist()
    assert [column.tolist() for column in read.entries()] == [column.tolist() for column in saved.entries()]


_INT64 = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.one_of(_INT64, st.integers(0, 300), st.sampled_from([-(2**63), 2**63 - 1])), max_size=300))
def test_a_packed_column_gives_back_any_int64(values: list[int]) -> None:
    column = PackedColumn.of(np.array(values, dtype=np.int64))
    assert len(column) == len(values)
    assert column.values(np.arange(len(values))).tolist() == values
    assert column.is_sound(len(values))


def test_a_trie_of_a_thousand_million_has_tiers_of_a_million_and_its_numbers_fit() -> None:
    window = Window(10**9)
    sizes = tier_sizes(window)
    assert sizes == (2**18, 4, 2**20)
    planned = TrieTiers.bytes_for(window)
    assert planned == pytest.approx(34 * 10**9, rel=0.01)
    # Kept indices, positions and times of any size: a head and a tier hold rows, not numbers, in 32 bits.
    tiers = TrieTiers(window, TierSizes(4, 2, 8))
    first = 2**62
    for start in range(0, 40, 2):
        kept = np.arange(first + start, first + start + 2)
        tiers.add(_random(40, 9)[start : start + 2], -kept, kept, kept)
    found, leaders, kept_found, _ = tiers.find(_random(40, 9))
    assert found.all()
    assert (kept_found == np.arange(first, first + 40)).all()
    assert (leaders == -kept_found).all()
