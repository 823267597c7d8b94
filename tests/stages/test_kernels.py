"""Each kernel is compiled for one list of argument types: a second one costs as much again at the first start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

INLINED = {
    "stages.exact.bloom_kernel._bit",
    "stages.exact.bloom_kernel._place",
    "stages.exact.tags._home",
    "stages.exact.trie_head._cell_of",
}
"""Written into their callers, never compiled by themselves."""


def test_each_kernel_has_one_signature(root: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.every_kernel"],
        cwd=root,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    held = json.loads(ran.stdout)["held"]
    assert len(held) > 90
    assert {name: count for name, count in held.items() if count != 1} == dict.fromkeys(INLINED, 0)
