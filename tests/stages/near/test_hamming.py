"""Layouts and limits of hamming mode; that its tables find what a full scan finds stands in `tests/accuracy`."""

from __future__ import annotations

import pytest

from twinsieve.stages.errors import UsageError
from twinsieve.stages.near.hamming import distance_table, table_masks


def test_layouts_without_full_recall_are_refused() -> None:
    with pytest.raises(UsageError, match=r"near.blocks is 3.*use 4..64"):
        table_masks(3, 3)
    with pytest.raises(UsageError, match="tables"):
        table_masks(20, 7)


@pytest.mark.parametrize("steps", [(), ((8, 8),), ((8, -1),), ((20, 3), (8, 5)), ((8, 3), (8, 4))])
def test_unusable_distance_steps_are_refused(steps: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(UsageError, match=r"near\.distances"):
        distance_table(steps)


def test_k_follows_the_shorter_body() -> None:
    assert distance_table(((8, 7), (20, 3))).tolist() == [-1] * 8 + [7] * 12 + [3]
