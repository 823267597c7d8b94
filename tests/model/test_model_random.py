"""The protocol under seeded random interleavings, judged from the raw topics alone.

TWINSIEVE_MODEL_SEEDS=1000 runs more of them, TWINSIEVE_MODEL_FIRST=77 begins elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.model.chaos import ACTIONS, Chaos
from tests.model.sharding import without_threads

SEEDS = int(os.environ.get("TWINSIEVE_MODEL_SEEDS", "8"))
FIRST = int(os.environ.get("TWINSIEVE_MODEL_FIRST", "0"))


def run_one(seed: int, folder: Path, *, moves: bool, shards: bool = False) -> Chaos:
    chaos = Chaos(seed, folder, moves=moves, shards=shards)
    for _ in range(ACTIONS):
        chaos.act()
    chaos.finish()
    chaos.judge()
    chaos.probe()
    assert not chaos.world.stops, chaos.world.stops
    return chaos


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_nothing_is_lost_doubled_or_stuck_whatever_dies(seed: int, tmp_path: Path) -> None:
    run_one(seed, tmp_path, moves=False)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_nothing_is_lost_doubled_or_stuck_when_operators_move_offsets(seed: int, tmp_path: Path) -> None:
    run_one(seed, tmp_path, moves=True)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_nothing_is_lost_doubled_or_stuck_whatever_becomes_of_shards(seed: int, tmp_path: Path) -> None:
    with without_threads():
        run_one(seed, tmp_path, moves=seed % 2 > 0, shards=True)
