"""Bloom generations against a plain list of all kept entries, and their error rate against what was asked."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pybloom_live import BloomFilter

from tests.examples import examples
from tests.stages.exact.filters import add, contains, filters_on, insert, oldest_hit
from twinsieve.stages.contract import MAX_WINDOW, Window
from twinsieve.stages.errors import StateError, UsageError
from twinsieve.stages.exact import bloom_sizing as bloom_sizes
from twinsieve.stages.exact.bloom import BloomGenerations
from twinsieve.stages.exact.bloom_kernel import (
    bloom_expire,
    bloom_place,
)
from twinsieve.stages.exact.bloom_sizing import bloom_sizing

_NEVER_BY_CHANCE = 1e-12
_BITS = 2**64 - 1


def _random(count: int, seed: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 2**64, (count, 2), dtype=np.uint64)


_KEYS = _random(2_000, seed=0)


def _plain_position(d0: int, d1: int, part: int, slice_bits: int) -> int:
    """Output `part` of a SplitMix64 with the state d0, scaled to the slice. The 16 highest bits of d1 choose its
    step."""
    word = (d0 + part * ((d1 >> 48) * 0x9E3779B97F4A7C15 | 1)) & _BITS
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _BITS
    word ^= word >> 31
    return word * slice_bits >> 64


@dataclass
class _Story:
    """The filters and beside them every entry ever kept, with the clock of the stream."""

    window: Window
    seen: BloomGenerations
    entries: list[tuple[int, int]] = field(default_factory=list)
    now: int = 0

    def move(self, ms: int) -> None:
        self.now += ms
        bloom_expire(self.seen.bloom, len(self.entries), self.now)

    def keep(self) -> None:
        key = _KEYS[len(self.entries)]
        insert(self.seen.bloom, key, len(self.entries), self.now)
        self.entries.append((len(self.entries), self.now))
        bloom_expire(self.seen.bloom, len(self.entries), self.now)

    def first_kept_of_hit(self, index: int) -> int:
        return oldest_hit(self.seen.bloom, _KEYS[index])

    def in_window(self, index: int, more_messages: int = 0, more_ms: int = 0) -> bool:
        kept, time = self.entries[index]
        if len(self.entries) - kept > self.window.messages + more_messages:
            return False
        return self.window.age_ms is None or self.now - time <= self.window.age_ms + more_ms


_WINDOWS = st.builds(Window, st.integers(1, 60), st.one_of(st.none(), st.integers(0, 100)))
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), st.integers(1, 20)),
        st.tuples(st.just("move"), st.sampled_from([0, 1, 2, 5, 13, 26, 99, 100, 101, 5_000])),
    ),
    max_size=60,
)


def _play(story: _Story, steps: list[tuple[str, int]]) -> None:
    for what, amount in steps:
        if what == "move":
            story.move(amount)
        else:
            for _ in range(amount):
                story.keep()


@settings(max_examples=examples(150), deadline=None)
@given(_WINDOWS, st.integers(2, 9), _STEPS)
def test_no_entry_is_missed_and_none_outlives_the_window_by_two_generations(
    window: Window, generations: int, steps: list[tuple[str, int]]
) -> None:
    story = _Story(window, BloomGenerations(window, _NEVER_BY_CHANCE, generations))
    sizing = story.seen.sizing
    for what, amount in steps:
        for _ in range(amount if what == "keep" else 1):
            _play(story, [(what, 1 if what == "keep" else amount)])
            for index in range(len(story.entries)):
                found = story.first_kept_of_hit(index)
                if story.in_window(index):
                    assert 0 <= found <= index
                if not story.in_window(index, sizing.capacity - 1, max(sizing.span_ms - 1, 0)):
                    assert found == -1
            assert story.seen.bloom.cursor[1] <= sizing.rows
    for index in range(len(story.entries), len(story.entries) + 50):
        assert story.first_kept_of_hit(index) == -1


@pytest.mark.parametrize("generations", [2, 4, 8])
def test_full_and_timed_out_generations_mixed_at_worst_lose_nothing(
    generations: int,
) -> None:
    window = Window(messages=10 * generations, age_ms=100)
    story = _Story(window, BloomGenerations(window, _NEVER_BY_CHANCE, generations))
    sizing = story.seen.sizing
    full_ones = (window.messages - 1) // sizing.capacity
    _play(story, [("keep", (1 + full_ones) * sizing.capacity)])
    _play(story, [("keep", 1), ("move", sizing.span_ms)] * (100 // sizing.span_ms))
    _play(story, [("keep", 1)])
    assert story.seen.bloom.cursor[1] == sizing.rows
    in_window = [index for index in range(len(story.entries)) if story.in_window(index)]
    assert in_window[0] < sizing.capacity
    assert all(story.first_kept_of_hit(index) >= 0 for index in in_window)


@settings(max_examples=examples(60), deadline=None)
@given(_WINDOWS, _STEPS)
def test_a_hit_names_the_first_index_of_the_oldest_generation_of_pybloom(
    window: Window, steps: list[tuple[str, int]]
) -> None:
    story = _Story(window, BloomGenerations(window, 0.3, generations=4))
    _play(story, steps)
    filters = filters_on(story.seen)
    oldest, live = story.seen.bloom.cursor.tolist()
    rows = [(oldest + number) % story.seen.sizing.rows for number in range(live)]
    for index in range(len(story.entries) + 20):
        key = (int(_KEYS[index, 0]), int(_KEYS[index, 1]))
        holding = [row for row in rows if key in filters[row]]
        expected = story.seen.bloom.generations[holding[0], 0] if holding else -1
        assert story.first_kept_of_hit(index) == expected


def test_when_one_key_is_in_two_generations_the_older_one_answers() -> None:
    seen = BloomGenerations(Window(8), _NEVER_BY_CHANCE, generations=4)
    for index, key in enumerate([0, 1, 0, 2]):
        insert(seen.bloom, _KEYS[key], index, 0)
    assert [oldest_hit(seen.bloom, _KEYS[key]) for key in range(4)] == [0, 0, 2, -1]


@settings(max_examples=examples(100), deadline=None)
@given(
    st.integers(0, _BITS),
    st.integers(0, _BITS),
    st.integers(0, 60),
    st.sampled_from([1, 2, 3, 19, 2**20, 2**32 - 1]),
)
def test_a_position_is_scaled_from_a_generator_that_the_digest_seeds(
    d0: int, d1: int, part: int, slice_bits: int
) -> None:
    position = bloom_place(np.uint64(d0), np.uint64(d1), part, slice_bits) - part * slice_bits
    assert position == _plain_position(d0, d1, part, slice_bits)
    assert 0 <= position < slice_bits


@pytest.mark.parametrize("capacity", [1, 2, 7, 100, 12_345])
@pytest.mark.parametrize("error_rate", [0.5, 0.3, 1e-2, 1e-3, 1e-6, 1e-15])
def test_sizes_are_those_of_pybloom_live(capacity: int, error_rate: float) -> None:
    sizing = bloom_sizing(Window(capacity * 4), error_rate, generations=4)
    own = BloomFilter(sizing.capacity, sizing.error_rate)
    assert (own.num_slices, own.bits_per_slice) == (sizing.slices, sizing.slice_bits)
    assert 8 * sizing.stride >= own.num_bits


def _by_formula(capacity: int, asked: float) -> tuple[int, int, float]:
    """(slices, bits of a slice, rate of a full filter) that pybloom's formula gives for a rate."""
    slices = math.ceil(math.log(1 / asked, 2))
    slice_bits = math.ceil(capacity * abs(math.log(asked)) / (slices * math.log(2) ** 2))
    return slices, slice_bits, (-math.expm1(capacity * math.log1p(-1 / slice_bits))) ** slices


@settings(max_examples=examples(300), deadline=None)
@example(117_646, 0.3140653924303205)
@given(st.integers(1, 3_000_000), st.floats(1e-12, 0.5))
def test_sizes_are_pyblooms_for_a_rate_that_keeps_the_share(capacity: int, error_rate: float) -> None:
    sizing = bloom_sizing(Window(capacity * 4), error_rate, generations=4)
    share = error_rate * capacity / (capacity + capacity * 4 - 1)
    slices, slice_bits, errs = _by_formula(capacity, sizing.error_rate)
    assert (sizing.slices, sizing.slice_bits) == (slices, slice_bits)
    assert errs <= share
    first = share
    while _by_formula(capacity, first)[2] > share:
        first *= 0.995
    # A smaller filter tells where to begin, and may need one slice more, which changes the rate by up to 6 %.
    assert first * 0.93 < sizing.error_rate <= first * 1.000001


def test_the_kernels_memory_is_the_bit_array_of_the_filter_and_no_copy() -> None:
    window = Window(2_000_000)
    sizing = bloom_sizing(window, 1e-6)
    gc.collect()
    tracemalloc.start()
    try:
        seen = BloomGenerations(window, 1e-6)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1.01 * seen.bytes_used + 1_000_000
    assert peak < held + 2 * sizing.stride
    rows = seen.bloom.bits.reshape(sizing.rows, -1)
    for bloom, row in zip(filters_on(seen), rows, strict=True):
        assert np.shares_memory(np.frombuffer(bloom.bitarray, dtype=np.uint8), row)


def _at_capacity(window: Window, error_rate: float) -> BloomGenerations:
    """Filters at their fullest: all generations hold their capacity and the oldest is just still alive."""
    seen = BloomGenerations(window, error_rate)
    count = window.messages - 1 + seen.sizing.capacity
    keys = _random(count, seed=1)
    add(seen, keys)
    assert contains(seen, keys).all()
    return seen


@pytest.mark.parametrize("age_ms", [None, 1_000])
@pytest.mark.parametrize(("error_rate", "probes"), [(1e-2, 1_000_000), (1e-3, 6_000_000)])
def test_all_full_generations_together_err_as_often_as_asked(
    error_rate: float, probes: int, age_ms: int | None
) -> None:
    seen = _at_capacity(Window(100_000, age_ms), error_rate)
    wrong = np.count_nonzero(contains(seen, _random(probes, seed=2)))
    assert 0.8 * error_rate * probes <= wrong <= 1.2 * error_rate * probes


@pytest.mark.parametrize("messages", [1, 2, 3, 8, 30, 250, 2_000])
@pytest.mark.parametrize("error_rate", [0.5, 0.05, 1e-3])
def test_filters_of_every_size_keep_the_rate_on_average_over_many_fillings(
    messages: int, error_rate: float
) -> None:
    fillings = 60
    probes = 20_000
    wrong = 0
    for filling in range(fillings):
        seen = BloomGenerations(Window(messages), error_rate)
        count = messages - 1 + seen.sizing.capacity
        add(seen, _random(count, seed=100 + filling))
        wrong += np.count_nonzero(contains(seen, _random(probes, seed=filling)))
    assert wrong <= 1.2 * error_rate * fillings * probes


@pytest.mark.parametrize(
    ("window", "error_rate", "said"),
    [
        (Window(101, 5_000), 1e-3, r"exact\.window\.messages 100, the configuration says .*messages 101"),
        (Window(100, 6_000), 1e-3, r"exact\.window\.age_ms 5000, the configuration says .*age_ms 6000"),
        (Window(100), 1e-3, r"exact\.window\.age_ms 5000, the configuration says .*age_ms none"),
        (Window(100, 5_000), 1e-2, r"exact\.error_rate 0\.001, the configuration says .*error_rate 0\.01"),
    ],
)
def test_a_state_of_other_settings_is_refused_with_what_to_do(
    window: Window, error_rate: float, said: str
) -> None:
    sections = BloomGenerations(Window(100, 5_000), 1e-3).freeze().whole()
    with pytest.raises(StateError, match=said + ".*; restore the setting or begin with a new state$"):
        BloomGenerations.from_sections(sections, window, error_rate)


Sections = dict[str, NDArray[np.generic]]


def _counted(sections: Sections) -> Sections:
    columns = sections["generations"].copy()
    columns[0, 4] = 10**9
    return sections | {"generations": columns}


_DAMAGES: dict[str, Callable[[Sections], Sections]] = {
    "bits missing": lambda sections: {name: sections[name] for name in sections if name != "1.bits"},
    "bits cut": lambda sections: sections | {"1.bits": sections["1.bits"][:-1]},
    "newest bits missing": lambda sections: {
        name: sections[name] for name in sections if name != "base.bits"
    },
    "newest bits of an earlier moment": lambda sections: sections | {"base": sections["base"] - 1},
    "no columns": lambda sections: sections | {"generations": np.array(7)},
    "another order": lambda sections: sections | {"generations": sections["generations"][::-1].copy()},
    "another count": _counted,
    "too many": lambda sections: sections | {"generations": np.tile(sections["generations"], (40, 1))},
    "another type": lambda sections: sections | {"parameters": sections["parameters"].astype(np.float64)},
}


@pytest.mark.parametrize("damage", _DAMAGES.values(), ids=list(_DAMAGES))
def test_a_damaged_state_is_refused_and_never_indexes_out_of_bounds(
    damage: Callable[[Sections], Sections],
) -> None:
    window = Window(100)
    seen = BloomGenerations(window, 1e-3)
    add(seen, _KEYS[:40])
    with pytest.raises(StateError, match="the state is damaged, begin with a new state"):
        BloomGenerations.from_sections(damage(seen.freeze().whole()), window, 1e-3)


@pytest.mark.parametrize("error_rate", [0.0, -1e-3, 0.51, 1.0, 1e-16, float("nan"), float("inf")])
def test_a_nonsense_error_rate_is_refused(error_rate: float) -> None:
    with pytest.raises(UsageError, match=r"exact\.error_rate is .*; use 1e-15\.\.0\.5"):
        BloomGenerations(Window(100), error_rate)


def test_a_window_too_large_for_one_filter_is_refused_and_takes_no_memory() -> None:
    with pytest.raises(UsageError, match="a filter serves at most"):
        BloomGenerations(Window(2**40), 1e-3)


def test_a_rate_below_what_80_bits_of_a_digest_can_tell_apart_is_refused() -> None:
    bloom_sizing(Window(10**9), 1e-15)
    with pytest.raises(
        UsageError, match=r"error_rate is 1e-15; a window of 2000000000 .* needs 1\.9e-15 or more"
    ):
        bloom_sizing(Window(2 * 10**9), 1e-15)


@pytest.mark.parametrize("messages", [10**9, MAX_WINDOW])
def test_the_sizes_of_a_very_large_window_are_found_without_its_memory(
    messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All places are below 2^63, slices below 2^32, and the bytes those of the filters by the formula."""

    def created(capacity: int, rate: float) -> BloomFilter:
        assert capacity <= 1_000_000
        return BloomFilter(capacity, rate)

    monkeypatch.setattr(bloom_sizes, "BloomFilter", created)
    for age_ms, rows in ((None, 9), (7 * 86_400_000, 13)):
        sizing = bloom_sizing(Window(messages, age_ms), 1e-6)
        assert (sizing.capacity, sizing.rows) == (messages // 8, rows)
        assert sizing.slice_bits < 2**32
        bits = messages / 8 * math.log(9e6) / math.log(2) ** 2
        assert 8 * sizing.stride == pytest.approx(bits, rel=0.01)
        total = BloomGenerations.bytes_for(Window(messages, age_ms), 1e-6)
        assert total == rows * (sizing.stride + 40) + 16
        last = bloom_place(np.uint64(0), np.uint64(2**64 - 1), sizing.slices - 1, sizing.slice_bits)
        assert 0 <= last < sizing.slices * sizing.slice_bits <= 8 * sizing.stride
    with pytest.raises(UsageError, match="a filter serves at most 23"):
        bloom_sizing(Window(24 * 10**9), 1e-6)
