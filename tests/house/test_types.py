"""mypy has nothing to say; it runs here beside other tests, where it would leave a core idle by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.heavy
def test_types_are_right(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy"], cwd=root, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
