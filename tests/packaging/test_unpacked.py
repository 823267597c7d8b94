"""The files of the project with nothing beside them, in the house of somebody new: what `make test` meets elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_OWN = ("CI", "TWINSIEVE_", "PYTEST_", "GIT_", "XDG_", "PYTHONPATH")


def _run(folder: Path, home: Path, *arguments: str) -> str:
    """What Python prints in the folder; nothing on the path, so that nothing is installed or fetched."""
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=kept | {"HOME": str(home), "PATH": str(home)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout


def test_the_unpacked_files_are_read_and_not_the_checkout(unpacked: Path, tmp_path: Path) -> None:
    said = _run(unpacked, tmp_path / "home", "-c", "import twinsieve.pipeline as p; print(p.__file__)")
    assert Path(said.strip()).is_relative_to(unpacked)


@pytest.mark.minutes
def test_its_tests_are_collected_without_an_error(unpacked: Path, tmp_path: Path) -> None:
    _run(unpacked, tmp_path / "home", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
