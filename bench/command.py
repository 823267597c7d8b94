"""Runs of the command `dedup` that measurements compare."""

from __future__ import annotations

import json
import os
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
    """What `--stats` says of a quiet run, with `cpu_seconds` and `peak_bytes` of its process.

    program: by default that of this checkout; flags: more of them
    raises: CalledProcessError if it fails
    """
    stats = output.with_name("stats.json")
    words = [*program, "dedup", "-q", source, "-o", output, "--stats", stats, *flags]
    _, status, usage = os.wait4(subprocess.Popen(words, cwd=_ROOT).pid, 0)
    if status:
        raise subprocess.CalledProcessError(os.waitstatus_to_exitcode(status), words)
    found: dict[str, Any] = json.loads(stats.read_bytes())
    return found | {"cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_bytes": usage.ru_maxrss << 10}
