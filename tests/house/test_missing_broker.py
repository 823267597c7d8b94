"""Tests on a real broker never turn into a skip."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ASKS = "tests/broker/test_topics.py"


def test_without_java_they_fail_and_say_what_to_install(root: Path, tmp_path: Path) -> None:
    """Neither Java nor anything to install it with is on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "TWINSIEVE_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", _ASKS],
        cwd=root,
        env=kept | {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "no real broker: " in done.stdout
    assert "install Java 17 or newer, Maven and OpenSSL" in done.stdout
    assert "skipped" not in done.stdout
    assert "FileNotFoundError" not in done.stdout
