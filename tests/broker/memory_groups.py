"""Limits of memory for processes, as containers have them: a cgroup for each.

Source: https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup/memory")
_ENTER = """
group=$(mktemp -d "$1/process-XXXXXX") && echo "$2" > "$group/memory.limit_in_bytes" && echo $$ > "$group/cgroup.procs" || exit 125
shift 2
exec "$@"
"""


class MemoryGroups:
    """Groups below one folder; every process that starts with the words of `within` gets its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def within(self, limit_bytes: int) -> list[str]:
        """Words to put in front of a command, so that its process may use no more memory than this."""
        return ["sh", "-c", _ENTER, "sh", str(self._folder), str(limit_bytes)]

    @property
    def killed(self) -> int:
        """Processes that the kernel has killed for their memory."""
        controls = [group / "memory.oom_control" for group in self._groups()]
        found = [re.search(r"^oom_kill (\d+)$", each.read_text(), re.MULTILINE) for each in controls]
        return sum(int(each[1]) for each in found if each is not None)

    def _groups(self) -> list[Path]:
        return [path for path in self._folder.iterdir() if path.is_dir()]

    def _close(self) -> None:
        for group in [*self._groups(), self._folder]:
            for _ in range(50):
                try:
                    group.rmdir()
                    break
                except OSError:  # a process of it is still on its way out
                    time.sleep(0.1)


@contextmanager
def memory_groups() -> Iterator[MemoryGroups]:
    """Groups that go with the block, which all their processes have to leave before.

    raises: OSError where this user may not make cgroups of version 1
    """
    made = MemoryGroups(Path(tempfile.mkdtemp(prefix=f"twinsieve-{os.getpid()}-", dir=_ROOT)))
    try:
        yield made
    finally:
        made._close()
