"""`warm-up` compiles every kernel, each for one list of argument types: a second one costs as much again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from twinsieve.pipeline.service.warm_up import CALLS_SOURCE
from twinsieve.stages.kernel import folder


@pytest.fixture(scope="module")
def cache(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the warm-up compiled, and nothing that tests compiled."""
    _warm_up(root, dict(os.environ))
    kept = folder.path()
    cache = tmp_path_factory.mktemp("cache") / kept.name
    cache.mkdir(mode=0o700)
    for name in folder.mark_of(CALLS_SOURCE.read_bytes()).read_text().split():
        shutil.copy(kept / name, cache)
    if set(_signatures(cache).values()) != {1}:
        # Tests may have run before the warm-up, and compiled for other types: only an empty folder tells.
        shutil.rmtree(cache)
        _warm_up(root, os.environ | {"NUMBA_CACHE_DIR": str(cache.parent)})
    return cache


def _warm_up(root: Path, environment: dict[str, str]) -> None:
    subprocess.run(
        [sys.executable, "-m", "twinsieve", "warm-up", "-q"], cwd=root, env=environment, check=True
    )


def _signatures(cache: Path) -> Counter[str]:
    """Of each kernel that is kept in this folder: for how many lists of argument types."""
    return Counter(path.name.rsplit(".", 2)[0] for path in cache.glob("*.nbc"))


@pytest.fixture(scope="module")
def used(root: Path, cache: Path) -> dict[str, int]:
    """What a process says that then uses every kernel."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.every_kernel"],
        cwd=root,
        env=environment | {"NUMBA_CACHE_DIR": str(cache.parent)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    said: dict[str, int] = json.loads(ran.stdout)
    return said


def test_nothing_is_left_to_compile_after_the_warm_up(used: dict[str, int]) -> None:
    assert len(used) > 50
    assert {name: count for name, count in used.items() if count} == {}


def test_each_kernel_has_one_signature(cache: Path, used: dict[str, int]) -> None:
    assert _signatures(cache) == dict.fromkeys(used, 1)
