"""Ten hostile runs whose seeds are fixed; `make nasty RUNS=5000` plays more of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nasty.chaos import run
from tests.nasty.kinds import Kind

_SEEDS = (1, 2, 3, 9, 10, 11, 12, 13, 14, 16)
"""Each kind is played by three of them or more."""


@pytest.mark.parametrize("seed", _SEEDS)
def test_nothing_is_lost_extra_or_stuck_and_nobody_stops_for_nothing(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path, list(Kind))


def test_runs_with_shards_judge_rows_with_their_answers(tmp_path: Path) -> None:
    """Else they would show nothing of shards."""
    assert any(run(seed, tmp_path / str(seed), [Kind.SHARDS]).answered for seed in (1, 2, 3))
