"""Compiled kernels on disk that are older than the source: Numba looks at a kernel's own file alone.

A kernel that calls one of a file which has changed since is loaded as it was, and judges by the old rules. So
whoever updates a checkout would get verdicts of the version before, without a word.
"""

from __future__ import annotations

from pathlib import Path

_COMPILED = ("*.nbi", "*.nbc")


def drop_stale_kernels(folder: Path | None = None) -> int:
    """How many files were removed: all of Numba's, if a source is newer than the oldest of their indexes.

    folder: of the package, `stages` by default. Costs about a millisecond. What cannot be removed stays:
    where a package is installed for reading alone, Numba keeps its files elsewhere, and an installation
    renews all sources at once.
    """
    folder = folder or Path(__file__).resolve().parent.parent / "stages"
    compiled = _times_ns(folder, "*.nbi")
    if not compiled or max(_times_ns(folder, "*.py"), default=0) <= min(compiled):
        return 0
    removed = 0
    for pattern in _COMPILED:
        for path in folder.rglob(pattern):
            try:
                path.unlink()
            except (FileNotFoundError, PermissionError):
                continue
            removed += 1
    return removed


def _times_ns(folder: Path, pattern: str) -> list[int]:
    """When the files changed; another process may be removing some of them right now."""
    times = []
    for path in folder.rglob(pattern):
        try:
            times.append(path.stat().st_mtime_ns)
        except FileNotFoundError:
            continue
    return times
