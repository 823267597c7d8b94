"""An arena comes back when nothing refers to it any more, and not before."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from twinsieve.pipeline.broker.arenas import Arenas
from twinsieve.pipeline.broker.records import Partition, Records

_AT = Partition("in", 0)
_LARGE = 100_000


def test_a_view_of_any_kind_keeps_its_arena() -> None:
    arenas = Arenas(1 << 20)
    arena = arenas.take(_LARGE)
    arena[:] = 7
    view, raw, again = arena[5:9], memoryview(arena)[5:9], np.frombuffer(arena.data, np.uint8)
    del arena
    assert set(bytes(view)) | set(raw) | set(again.tolist()) == {7}
    del view
    assert arenas.alive == 1
    del raw
    assert arenas.alive == 1
    del again
    assert (arenas.alive, arenas.alive_bytes) == (0, 0)


def test_what_came_back_is_used_again_and_its_bytes_are_gone() -> None:
    arenas = Arenas(1 << 20)
    arena = arenas.take(_LARGE)
    arena[:], place = 7, arena.ctypes.data
    del arena
    again = arenas.take(_LARGE - 9)
    assert again.ctypes.data == place
    assert set(again.tolist()) == {0xA5}, "as conftest.py has it"
    assert arenas.take(_LARGE).ctypes.data != place


def test_no_more_is_kept_than_is_said() -> None:
    arenas = Arenas(2 * _LARGE)
    held = [arenas.take(_LARGE) for _ in range(4)]
    held.clear()
    assert arenas.alive == 0
    assert 0 < arenas._free_bytes <= 2 * _LARGE
    small = arenas.take(100)
    del small
    assert arenas._free_bytes <= 2 * _LARGE
    assert all(len(each) >= _LARGE for each in arenas._free)


@given(st.lists(st.tuples(st.integers(0, 300_000), st.integers(0, 5))))
def test_no_two_arenas_in_use_overlap(steps: list[tuple[int, int]]) -> None:
    arenas = Arenas(500_000)
    held: list[tuple[NDArray[np.uint8], int]] = []
    for number, (size, gone) in enumerate(steps):
        arena = arenas.take(size)
        assert size <= len(arena) <= max(65_536, 2 * size * 9 // 8)
        arena[:] = number % 251
        held.append((arena, number % 251))
        del arena
        del held[:gone]
        assert arenas.alive == len(held)
        assert all((each == mark).all() for each, mark in held)


def test_records_hold_their_arena_and_nothing_that_was_made_of_them_does() -> None:
    arenas = Arenas(1 << 20)
    whole = Records.of(_AT, range(50), values=[b"value %d" % row for row in range(50)])
    begin, end = whole.span
    records = Records.joined(_AT, [whole], arenas.take(end - begin))
    part = records.slice(3, 5)
    values, headers = [*part.values], part.headers
    del records
    assert arenas.alive == 1
    assert part.values == [b"value 3", b"value 4"]
    del part
    gc.collect()
    assert arenas.alive == 0
    assert (values, headers) == ([b"value 3", b"value 4"], [(), ()])


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 1_000_001])
def test_an_arena_wastes_no_more_than_an_eighth(size: int) -> None:
    assert size <= len(Arenas(0).take(size)) <= size * 9 / 8 + 1
