"""Hamming mode finds what a full scan finds, whatever the layout of its tables."""

from __future__ import annotations

import pytest

from bench.quality_hamming import LARGEST, layouts, random_batch, real_batch, wrong_rows
from twinsieve.stages.contract import Batch

pytestmark = pytest.mark.usefixtures("data_dir")

ROWS = 1_500


@pytest.fixture(scope="module", params=["real", "random"])
def batch(request: pytest.FixtureRequest) -> Batch:
    return real_batch(ROWS) if request.param == "real" else random_batch(ROWS)


@pytest.mark.parametrize("k", range(LARGEST + 1))
def test_tables_of_any_layout_equal_a_full_scan(batch: Batch, k: int) -> None:
    for blocks in layouts(k):
        dropped, wrong = wrong_rows(batch, k, blocks)
        assert (wrong, blocks) == (0, blocks)
        assert dropped > 30
