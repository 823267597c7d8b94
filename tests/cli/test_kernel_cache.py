"""Compiled kernels never outlive the sources they were made of."""

from __future__ import annotations

import os
from pathlib import Path

from twinsieve.pipeline.kernel_cache import drop_stale_kernels


def _touch(path: Path, time_s: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time_s, time_s))


def test_kernels_go_when_any_source_is_newer_and_stay_else(tmp_path: Path) -> None:
    callee, caller = tmp_path / "near" / "pairs.py", tmp_path / "near" / "decide.py"
    compiled = [tmp_path / "near" / "__pycache__" / name for name in ("decide.1.nbi", "decide.1.nbc")]
    assert drop_stale_kernels(tmp_path) == 0
    for path, time_s in [(callee, 100), (caller, 200), *((one, 300) for one in compiled)]:
        _touch(path, time_s)
    assert drop_stale_kernels(tmp_path) == 0
    assert all(path.exists() for path in compiled)
    _touch(callee, 400)
    assert drop_stale_kernels(tmp_path) == 2
    assert not any(path.exists() for path in compiled)
