"""A callee holds no objects of Python: it has no machine code that could be told their addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from numba import int64, njit
from numpy.typing import NDArray

from twinsieve.stages.callee import Callee


def _prints(numbers: NDArray[np.int64]) -> int:
    print(numbers)
    return len(numbers)


def _counts(numbers: NDArray[np.int64]) -> int:
    return len(numbers)


def _callee(function: Callable[..., int]) -> Callee:
    entry = cast("Any", njit)(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return Callee(function, entry.targetoptions)


def test_a_callee_that_needs_objects_of_python_is_not_compiled() -> None:
    with pytest.raises(TypeError, match="_prints needs objects of Python: make it an entry, not a callee"):
        _callee(_prints).compile((int64[:],))


def test_a_callee_serves_kernels_and_not_python() -> None:
    callee = _callee(_counts)

    @njit  # type: ignore[untyped-decorator]
    def entry(numbers: NDArray[np.int64]) -> int:
        return callee(numbers)  # type: ignore[no-any-return]

    assert entry(np.zeros(3, np.int64)) == 3
    with pytest.raises(TypeError, match="_counts has no entry for Python: only kernels call it"):
        callee(np.zeros(3, np.int64))
