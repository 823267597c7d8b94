"""Memory of this process that no file backs, and the most that it may take. Both are known on Linux alone."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import chain
from pathlib import Path, PurePosixPath

_OWN = re.compile(r"^Rss(?:Anon|Shmem):\s+(\d+) kB$", re.MULTILINE)
_ROOT = Path("/")


def anonymous_bytes(root: Path = _ROOT) -> int | None:
    """Resident memory without pages of files, which the kernel takes back if it needs room; None: unknown."""
    try:
        status = (root / "proc/self/status").read_text("utf-8")
    except OSError:
        return None
    return 1024 * sum(map(int, found)) if (found := _OWN.findall(status)) else None


def spare_bytes(root: Path = _ROOT) -> int | None:
    """How many bytes more this process may take; None: unknown."""
    taken, limit = anonymous_bytes(root), limit_bytes(root)
    return None if taken is None or limit is None else limit - taken


def limit_bytes(root: Path = _ROOT) -> int | None:
    """The lowest limit of the cgroups of this process, or the memory of the machine if that is less.

    Where a container sees the tree of its own cgroup alone, as Docker and Kubernetes mount it, the path that
    /proc/self/cgroup names does not exist, and the root of the tree has the limit.
    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
    """
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return None
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            tree, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            tree, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        below = PurePosixPath(path.lstrip("/"))
        for folder in chain([below], below.parents):
            # Absent at the root of a machine; the word "max" is no limit.
            with suppress(OSError, ValueError):
                limits.append(int((tree / folder / name).read_text("ascii")))
    return min(limits)
