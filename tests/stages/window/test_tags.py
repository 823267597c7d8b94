"""The tag index against a dict: it finds the newest entry of a tag in the ring, and nothing else."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from twinsieve.stages.errors import UsageError
from twinsieve.stages.window import tags
from twinsieve.stages.window.tags import TagIndex, tag_find, tag_insert, tag_remove

_SPREAD = 0x9E3779B97F4A7C15
_INVERSE = pow(_SPREAD, -1, 2**64)


def _tag_with_home(home: int, salt: int) -> int:
    """A tag whose search starts at the low bits of `home` in every table (the hash run backwards)."""
    mixed = ((home << 32) | salt) * _INVERSE % 2**64
    return mixed ^ (mixed >> 32)


_CROWDED = st.builds(_tag_with_home, st.integers(0, 3), st.integers(0, 5))
_ALIKE_LOW = st.integers(0, 7).map(lambda high: (high << 61) | 0x1234)
_ALIKE_HIGH = st.integers(0, 7).map(lambda low: (0xABCD << 48) | low)
_TAGS = st.one_of(
    _CROWDED, _ALIKE_LOW, _ALIKE_HIGH, st.just(0), st.just(2**64 - 1), st.integers(0, 2**64 - 1)
)


class _Ring:
    """A ring that keeps its tag index as the sieve does, and beside it a plain dict of what it holds."""

    def __init__(self, capacity: int) -> None:
        self.tags = np.zeros(capacity, dtype=np.uint64)
        self.index = TagIndex(capacity)
        self.held: list[tuple[int, int]] = []
        self.next = 0

    def keep(self, tag: int) -> None:
        slot = self.next % len(self.tags)
        before = self.index.slots
        grew = self.index.reserve(self.tags, self.oldest, len(self.held), 1)
        assert grew == (self.index.slots is not before)
        if self.next >= len(self.tags):
            self.drop_oldest()
        self.tags[slot] = tag
        tag_insert(self.index.slots, self.index.mask, self.tags, np.uint64(tag), slot)
        self.held.append((tag, slot))
        self.next += 1

    @property
    def oldest(self) -> int:
        return self.held[0][1] if self.held else 0

    def drop_oldest(self) -> None:
        tag, slot = self.held.pop(0)
        newest = dict(self.held)
        removed = tag_remove(self.index.slots, self.index.mask, self.tags, np.uint64(tag), slot)
        assert removed == (tag not in newest)

    def find(self, tag: int) -> int:
        return tag_find(self.index.slots, self.index.mask, self.tags, np.uint64(tag))


@settings(max_examples=examples(200), deadline=None)
@given(
    st.integers(1, 24), st.sampled_from([1, 4, 64]), st.lists(_TAGS, max_size=80), st.lists(_TAGS, max_size=8)
)
def test_find_gives_the_newest_slot_of_a_tag_and_minus_one_for_all_others(
    capacity: int, first_cells: int, kept: list[int], never_kept: list[int]
) -> None:
    with patch.object(tags, "_FIRST_CELLS", first_cells):
        ring = _Ring(capacity)
    for tag in kept:
        ring.keep(tag)
        newest = dict(ring.held)
        for other in {*kept, *never_kept}:
            assert ring.find(other) == newest.get(other, -1)


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(1, 16), st.lists(_CROWDED, max_size=60))
def test_an_emptied_ring_leaves_an_empty_table(capacity: int, kept: list[int]) -> None:
    ring = _Ring(capacity)
    for tag in kept:
        ring.keep(tag)
    while ring.held:
        ring.next = len(ring.tags)
        ring.drop_oldest()
    assert (ring.index.slots == 0).all()


@pytest.mark.parametrize("capacity", [0, -1, 2**30 + 1])
def test_an_impossible_capacity_is_refused(capacity: int) -> None:
    with pytest.raises(UsageError, match="ring capacity is"):
        TagIndex(capacity)


@pytest.mark.parametrize("capacity", [1, 2, 3, 1_000, 1_000_000])
def test_a_full_table_is_a_power_of_two_with_room_and_as_large_as_said(capacity: int) -> None:
    cells = TagIndex.bytes_for(capacity) // 4
    assert cells & (cells - 1) == 0
    assert 1.5 * capacity <= cells <= 4 * capacity
    index = TagIndex(capacity)
    index.reserve(np.zeros(capacity, np.uint64), 0, 0, capacity + 5)
    assert len(index.slots) == cells
