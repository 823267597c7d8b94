"""`warm-up` compiles every kernel, each for one list of argument types: a second one costs as much again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from twinsieve.stages.text.profiles_microblog import _is_han


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A folder that `warm-up` has filled; nothing is taken from elsewhere."""
    cache = tmp_path_factory.mktemp("cache")
    _run(root, cache, "twinsieve", "warm-up")
    return cache


@pytest.fixture(scope="module")
def used(cache: Path, root: Path) -> dict[str, dict[str, int]]:
    """What a process says that then uses every kernel."""
    said: dict[str, Any] = json.loads(_run(root, cache, "tests.every_kernel"))
    return said


def _run(root: Path, cache: Path, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=root,
        env={**environment, "NUMBA_CACHE_DIR": str(cache)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def test_nothing_is_left_to_compile_after_the_warm_up(used: dict[str, dict[str, int]]) -> None:
    assert len(used["compiled"]) > 90
    assert {name: count for name, count in used["compiled"].items() if count} == {}


def test_each_kernel_has_one_signature(cache: Path, used: dict[str, dict[str, int]]) -> None:
    """Also where processes compiled at the same time, and after all of them were used."""
    files = Counter(path.name.rpartition("-")[0] for path in cache.rglob("*.kernel"))
    assert files == dict.fromkeys((f"twinsieve.{name}" for name in used["held"]), 1)


def test_a_kernel_for_kernels_alone_refuses_python() -> None:
    """Also once it is compiled: there is no machine code to jump to."""
    dispatcher: Any = _is_han
    for _ in range(2):
        with pytest.raises(TypeError, match="_is_han has no entry for Python: only kernels call it"):
            dispatcher(1)
        dispatcher.compile("boolean(int64)")
