"""Runs that are killed at any moment and repeated leave what unbroken ones leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dedup.kills import kill_runs

pytestmark = pytest.mark.heavy


def test_killed_and_repeated_runs_leave_the_files_of_unbroken_ones(tmp_path: Path) -> None:
    """A handful on short files; `make kills` does 50 on longer ones."""
    found = kill_runs(tmp_path, kills=4, seed=1, rows=2_000)
    assert found.problems == []
    assert found.struck
