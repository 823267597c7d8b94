"""Hamming mode finds what a full scan finds, whatever the layout of its tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.accuracy.hamming import MAX_DISTANCE, layouts, random_batch, real_batch, wrong_rows
from tests.generated import LANGUAGES, stream
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.stages.contract import Batch
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

ROWS = 1_500


def batch_in(language: str) -> Batch:
    return batch_of(*Scheme(SchemeConfig()).read(stream(language, ROWS).texts))


BATCHES: dict[str, Callable[[], Batch]] = {
    "real": lambda: real_batch(ROWS),
    "random": lambda: random_batch(ROWS),
    **{language: partial(batch_in, language) for language in LANGUAGES},
}


@pytest.fixture(
    scope="module", params=[pytest.param("real", marks=pytest.mark.needs("posts")), "random", *LANGUAGES]
)
def batch(request: pytest.FixtureRequest) -> Batch:
    return BATCHES[request.param]()


@pytest.mark.matrix
@pytest.mark.parametrize("k", range(MAX_DISTANCE + 1))
def test_tables_of_any_layout_equal_a_full_scan(batch: Batch, k: int) -> None:
    for blocks, window in zip(layouts(k), (ROWS, ROWS // 2, ROWS // 5), strict=False):
        dropped, wrong = wrong_rows(batch, k, blocks, window)
        assert (wrong, blocks) == (0, blocks)
        assert dropped > 30
