"""The protocol under seeded random interleavings; the checker rebuilds the answer from the raw topics alone.

TWINSIEVE_MODEL_SEEDS=1000 runs more of them, TWINSIEVE_MODEL_FIRST=77 begins elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.model.chaos import ACTIONS, WINDOW, Chaos
from tests.model.checker import check_all_judged, check_complete, check_no_text, check_output, rebuild

SEEDS = int(os.environ.get("TWINSIEVE_MODEL_SEEDS", "14"))
FIRST = int(os.environ.get("TWINSIEVE_MODEL_FIRST", "0"))


def run_one(seed: int, folder: Path, *, moves: bool) -> Chaos:
    chaos = Chaos(seed, folder, moves=moves)
    for _ in range(ACTIONS):
        chaos.act()
    chaos.finish()
    truth = rebuild(chaos.world, window=WINDOW)
    fates = check_output(chaos.world, truth, in_order=not chaos.moved)
    check_complete(chaos.world, truth, fates)
    check_all_judged(chaos.world, truth)
    check_no_text(chaos.world, truth, fates)
    assert not chaos.world.stops, chaos.world.stops
    return chaos


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_nothing_is_lost_doubled_or_stuck_whatever_dies(seed: int, tmp_path: Path) -> None:
    run_one(seed, tmp_path, moves=False)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_nothing_is_lost_doubled_or_stuck_when_operators_move_offsets(seed: int, tmp_path: Path) -> None:
    run_one(seed, tmp_path, moves=True)
