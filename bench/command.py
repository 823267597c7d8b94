"""Runs of the command `dedup` that measurements compare."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_PROGRAM = (sys.executable, "-m", "twinsieve")


def stats_of(
    source: Path, output: Path, program: Sequence[str | Path] = _PROGRAM, flags: Sequence[str] = ()
) -> dict[str, Any]:
    """What `--stats` says of a quiet run; program: by default that of this checkout; flags: more of them."""
    stats = output.with_name("stats.json")
    words = [*program, "dedup", "-q", source, "-o", output, "--stats", stats, *flags]
    subprocess.run(words, cwd=_ROOT, check=True)
    found: dict[str, Any] = json.loads(stats.read_bytes())
    return found
