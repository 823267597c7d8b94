"""A clone with nothing beside it, in the house of somebody new: what `make test` meets on another machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_OWN = ("CI", "TWINSIEVE_", "PYTEST_", "GIT_", "XDG_", "PYTHONPATH")


def _git(folder: Path, *arguments: str, given: bytes = b"") -> bytes | None:
    """What git said; None without git, or where it cannot do it (this is no repository)."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, env=kept, input=given, capture_output=True, check=False
        )
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def _clone(root: Path, target: Path) -> None:
    """The last commit and what was changed since in files that git knows; without git, the files that are here."""
    if _git(root, "rev-parse", "--show-toplevel") != os.fsencode(f"{root}\n"):
        left_behind = shutil.ignore_patterns(
            ".venv", "build", "dist", "__pycache__", ".*_cache", ".hypothesis"
        )
        shutil.copytree(root, target, symlinks=True, ignore=left_behind)
        return
    assert _git(root, "clone", "--quiet", ".", str(target)) is not None
    changes = _git(root, "diff", "--binary", "HEAD")
    assert changes is not None
    if changes:
        assert _git(target, "apply", "--whitespace=nowarn", "-", given=changes) is not None


@pytest.fixture(scope="module")
def clone(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "twinsieve"
    _clone(root, folder)
    return folder


def _run(clone: Path, home: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and words of Python in the clone; nothing on the path, so that nothing is installed or fetched."""
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=clone,
        env=kept | {"HOME": str(home), "PATH": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_clone_is_read_and_not_the_checkout(clone: Path, tmp_path: Path) -> None:
    code, said = _run(clone, tmp_path / "home", "-c", "import twinsieve.pipeline as p; print(p.__file__)")
    assert code == 0, said
    assert Path(said.strip()).is_relative_to(clone)


@pytest.mark.needs("minutes")
def test_its_tests_are_collected_without_an_error(clone: Path, tmp_path: Path) -> None:
    code, said = _run(
        clone, tmp_path / "home", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"
    )
    assert code == 0, said.splitlines()[-20:]
