"""How many processors a process may use: what the system says, and the limit of its control group."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinsieve.pipeline.dedup import inputs


@pytest.mark.parametrize(
    ("limit", "most"), [("25000 100000\n", 1), ("150000 100000\n", 2), ("max 100000\n", 99), ("", 99)]
)
def test_the_limit_of_the_control_group_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, most: int
) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    monkeypatch.setattr(inputs, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(99)))
    assert inputs.cores() == most
