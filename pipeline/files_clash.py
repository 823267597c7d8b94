"""Files that would overwrite each other, found before anything is opened for writing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from stages.errors import UsageError


def refuse_clashes(inputs: list[str], outputs: dict[str, str | None]) -> None:
    """Nothing, if every output is a file of its own and none is an input.

    inputs: names as given; outputs: flag → name, None where not asked for
    raises: UsageError naming both; links and hard links are seen through, devices may be shared
    """
    taken: list[tuple[str, str]] = [(name, "an input") for name in inputs if name != "-"]
    for flag, name in outputs.items():
        if name is None:
            continue
        for other, use in taken:
            if _same(name, other):
                raise UsageError(f"{flag} {name}: is also {use} ({other}); name another file")
        taken.append((name, flag))


def _same(left: str, right: str) -> bool:
    if "-" in (left, right):
        return left == right
    if os.path.realpath(left) == os.path.realpath(right):
        return not _is_device(left)
    try:
        return os.path.samefile(left, right) and not _is_device(left)
    except OSError:
        return False


def _is_device(name: str) -> bool:
    try:
        return not stat.S_ISREG(Path(name).stat().st_mode)
    except OSError:
        return False
