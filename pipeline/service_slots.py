"""A stable name for this process: a restart in its slot needs no rebalance.

Without a name of its own a process takes host name plus the lowest number whose lock file is free. The lock
goes with the process, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import tempfile
from pathlib import Path
from typing import IO

from twinsieve.stages.errors import StateError

_MOST_SLOTS = 256


class Slot:
    """A held slot; `name` is part of member names and transactional ids."""

    def __init__(self, name: str, lock: IO[bytes] | None = None) -> None:
        self.name = name
        self._lock = lock

    def release(self) -> None:
        """Let another process have it."""
        if self._lock is not None:
            self._lock.close()


def take_slot(app: str, folder: Path | None = None) -> Slot:
    """The lowest free slot of this host and app.

    raises: StateError when lock files cannot be made

    >>> import tempfile; folder = Path(tempfile.mkdtemp())
    >>> first, second = take_slot("a", folder), take_slot("a", folder)
    >>> first.name.endswith("-0"), second.name.endswith("-1")
    (True, True)
    >>> first.release(); second.release()
    """
    folder = folder or Path(tempfile.gettempdir()) / f"twinsieve-{os.getuid()}"
    host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname())[:100] or "host"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(_MOST_SLOTS):
            lock = (folder / f"{app}-{number}.lock").open("ab")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                continue
            return Slot(f"{host}-{number}", lock)
    except OSError as error:
        raise StateError(
            f"{folder}: no lock file can be made ({error}); name the process with --member"
        ) from error
    raise StateError(f"{folder}: all {_MOST_SLOTS} slots are taken; name the process with --member")
