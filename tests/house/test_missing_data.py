"""Tests on real posts are left out by word alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_MEASURED = "tests/stages/test_fingerprint_accuracy.py::test_weak_bits_are_the_ones_an_edit_flips"
_OTHER = "tests/house/test_surface.py"


def run_without_data(root: Path, nowhere: Path, *more: str, **setting: str) -> tuple[int, str]:
    """Exit code and words of a run with a test that needs real posts, where there are none."""
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, _MEASURED, _OTHER, *more],
        cwd=root,
        env=kept | {"TWINSIEVE_DATA": str(nowhere)} | setting,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("setting", [{}, {"CI": "1"}])
def test_missing_data_is_a_failure(setting: dict[str, str], root: Path, tmp_path: Path) -> None:
    code, said = run_without_data(root, tmp_path, **setting)
    assert code == 1
    assert f"no real posts in {tmp_path}" in said
    assert "skipped" not in said


def test_whoever_leaves_them_out_is_told_so(root: Path, tmp_path: Path) -> None:
    code, said = run_without_data(root, tmp_path, "--without-real-posts")
    assert code == 0
    assert "1 deselected" in said
    assert "NOT MEASURED" in said
