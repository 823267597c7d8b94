"""Tests on real posts never turn into a skip that nobody sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_MEASURED = "tests/stages/test_fingerprint_accuracy.py::test_weak_bits_are_the_ones_an_edit_flips"


def run_without_data(root: Path, nowhere: Path, **more: str) -> tuple[int, str]:
    """Exit code and words of a test that needs real posts, where there are none."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "TWINSIEVE_REQUIRE_DATA")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", _MEASURED],
        cwd=root,
        env=kept | {"TWINSIEVE_DATA": str(nowhere)} | more,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", ["CI", "TWINSIEVE_REQUIRE_DATA"])
def test_missing_data_is_a_failure_where_it_must_be_there(name: str, root: Path, tmp_path: Path) -> None:
    code, said = run_without_data(root, tmp_path, **{name: "1"})
    assert code == 1
    assert f"no real posts in {tmp_path}" in said


def test_missing_data_is_a_loud_skip_elsewhere(root: Path, tmp_path: Path) -> None:
    code, said = run_without_data(root, tmp_path)
    assert code == 0
    assert "NOT MEASURED" in said
    assert "1 tests need real posts and did not run" in said
