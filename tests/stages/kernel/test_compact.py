"""What `compact.py` changes about Numba changes no result, and callees serve kernels alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import int64, njit
from numpy.typing import NDArray

from tests.examples import examples
from twinsieve.stages.kernel import compact, kernel


class Pair(NamedTuple):
    """Two arrays of one type: for Numba another kind of tuple than one of several types."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]


class Inner(NamedTuple):
    """A tuple in a tuple, of several types."""

    small: np.int8
    yes: np.bool_
    pair: Pair


class Outer(NamedTuple):
    """What the kernels get."""

    table: NDArray[np.uint16]
    inner: Inner
    last: float


class Made(NamedTuple):
    """A tuple that a kernel makes."""

    total: int
    numbers: NDArray[np.int64]


@kernel(callee=True)
def _summed(inner: Inner) -> int:
    total = np.int64(inner.small) if inner.yes else np.int64(0)
    for numbers in (inner.pair.first, inner.pair.second):
        for number in numbers:
            total += number
    return total


@kernel(callee=True)
def _made(outer: Outer) -> Made:
    return Made(_summed(outer.inner), outer.inner.pair.second)


@kernel(callee=True)
def _total_of(made: Made) -> int:
    return made.total + len(made.numbers)


@kernel
def _read(outer: Outer, places: NDArray[np.int64], more: Pair) -> float:
    """Everything in the tuples, read several times; the second pair is written meanwhile."""
    total = outer.last
    for place in places:
        total += outer.table[place, place % outer.table.shape[1]] + _total_of(_made(outer))
        more.first[0] += 1
        total += more.first[0]
    return total


@kernel(allocates=True)
def _doubled(pair: Pair) -> NDArray[np.int64]:
    """A new array; the arrays of the tuple are counted meanwhile."""
    first = pair.first
    return np.concatenate((first, pair.second))


def _expected(outer: Outer, places: NDArray[np.int64], more: Pair) -> float:
    """`_read` in plain Python."""
    inner = outer.inner
    total = outer.last
    for place in places.tolist():
        made = int(inner.small) * bool(inner.yes) + int(inner.pair.first.sum()) + int(inner.pair.second.sum())
        total += int(outer.table[place, place % outer.table.shape[1]]) + made + len(inner.pair.second)
        more.first[0] += 1
        total += int(more.first[0])
    return total


_NUMBERS = st.lists(st.integers(-(2**31), 2**31), min_size=1, max_size=5).map(
    lambda numbers: np.array(numbers, np.int64)
)


@settings(max_examples=examples(50))
@given(data=st.data())
def test_a_kernel_reads_what_python_reads(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 4))
    table = np.arange(rows * 3, dtype=np.uint16).reshape(rows, 3)
    pair = Pair(data.draw(_NUMBERS), data.draw(_NUMBERS))
    inner = Inner(np.int8(data.draw(st.integers(-128, 127))), np.bool_(data.draw(st.booleans())), pair)
    outer = Outer(table, inner, float(data.draw(st.integers(-9, 9))))
    places = np.array(data.draw(st.lists(st.integers(0, rows - 1))), np.int64)
    # The last tuple may hold an array that the first holds, too, and the kernel writes it.
    mine = Pair(pair.first.copy(), pair.second.copy())
    shared = data.draw(st.booleans())
    twin = outer._replace(inner=inner._replace(pair=mine))
    other = Pair(np.zeros(1, np.int64), np.zeros(1, np.int64))
    found = _read(outer, places, pair if shared else other)
    assert found == _expected(twin, places, mine if shared else Pair(np.zeros(1, np.int64), other.second))
    assert pair.first.tolist() == mine.first.tolist()


def test_the_arrays_of_a_tuple_are_counted_as_before() -> None:
    pair = Pair(np.arange(3), np.arange(4))
    counts = [sys.getrefcount(each) for each in pair]
    made: Any = [_doubled(pair) for _ in range(1000)]
    assert [sys.getrefcount(each) for each in pair] == counts
    assert made[-1].tolist() == [0, 1, 2, 0, 1, 2, 3]


@kernel(callee=True)
def _called(numbers: NDArray[np.int64]) -> int:
    return len(numbers)


@kernel(callee=True, inlined=True)
def _inlined(numbers: NDArray[np.int64]) -> int:
    return _called(numbers)


@kernel
def _entry(numbers: NDArray[np.int64]) -> int:
    return _inlined(numbers) + _called(numbers)


def test_a_kernel_is_inlined_if_it_says_so_and_not_because_its_caller_does() -> None:
    """Numba hands the option on to what it compiles meanwhile: then all rules were part of each of their callers."""
    assert _entry(np.zeros(3, np.int64)) == 6
    inlined = {}
    for each in (_called, _inlined):
        (made,) = cast("Any", each).dispatcher.overloads.values()
        inlined[each.__name__] = "alwaysinline" in str(made.library._get_module_for_linking())
    assert inlined == {"_called": False, "_inlined": True}


def test_a_callee_serves_kernels_and_not_python() -> None:
    with pytest.raises(TypeError, match="_called has no entry for Python: only kernels call it"):
        _called(np.zeros(3, np.int64))


def _prints(numbers: NDArray[np.int64]) -> int:
    print(numbers)
    return len(numbers)


def test_a_callee_that_needs_objects_of_python_is_not_compiled() -> None:
    callee = cast("Any", njit)(no_cpython_wrapper=True, pipeline_class=compact.CalleeCompiler)(_prints)
    with pytest.raises(TypeError, match="_prints needs objects of Python: make it an entry, not a callee"):
        callee.compile((int64[:],))


_LAST = """
import numpy as np
from numba import njit
from types import FunctionType
from twinsieve.stages.kernel.compact import EntryCompiler

def last(numbers, index):
    return numbers[index]

def of_module(name):
    return FunctionType(last.__code__, {"__name__": name}, "last")

numbers = np.arange(3)
compact = njit(pipeline_class=EntryCompiler)
for made in (compact(of_module("twinsieve.stages.elsewhere")), njit(of_module("elsewhere"))):
    for index in (2, -1, 3):
        try:
            print(int(made(numbers, index)), end=" ")
        except IndexError:
            print("IndexError", end=" ")
"""


def test_a_negative_index_is_none_in_a_kernel_and_counts_from_the_end_elsewhere(tmp_path: Path) -> None:
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", _LAST], env=os.environ | checked, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["2", "IndexError", "IndexError", "2", "2", "IndexError"]
