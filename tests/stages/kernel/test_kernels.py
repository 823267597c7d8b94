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
    """A folder with what the warm-up compiled before the tests (`make tests`), and nothing that tests compiled."""
    subprocess.run([sys.executable, "-m", "twinsieve", "warm-up", "-q"], cwd=root, check=True)
    kept = folder.path()
    cache = tmp_path_factory.mktemp("cache") / kept.name
    cache.mkdir(mode=0o700)
    for name in folder.mark_of(CALLS_SOURCE.read_bytes()).read_text().split():
        shutil.copy(kept / name, cache)
    return cache


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
    files = Counter(path.name.rsplit(".", 2)[0] for path in cache.glob("*.nbc"))
    assert files == dict.fromkeys(used, 1)
