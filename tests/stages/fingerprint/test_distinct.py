"""Distinct features come first, in order of first occurrence; 0 is a feature like any other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from tests.examples import examples
from twinsieve.stages.fingerprint.simhash import keep_distinct


@njit  # type: ignore[untyped-decorator]
def _kept(features: NDArray[np.uint64], table: NDArray[np.uint64]) -> int:
    return keep_distinct(features, len(features), table)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.integers(0, 9) | st.integers(0, 2**64 - 1), max_size=80))
def test_distinct_features_are_those_of_a_dict(values: list[int]) -> None:
    features = np.array(values, np.uint64)
    table = np.full(4 * len(values) + 1, 7, np.uint64)
    count = _kept(features, table)
    assert features[:count].tolist() == list(dict.fromkeys(values))
