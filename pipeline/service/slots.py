"""A stable name for this process, called its slot. A restarted process has the same name, so its consumer
groups need no rebalance.

Without `--member` the name is the host name and the number in the first free lock file. The number is drawn
at random when the file is made. The lock ends with the process, however it ends, and the number stays in the
file for the next process. Because it is random, two processes never get the same name, even if containers
share a host name but no folder, or if the folder was deleted.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
import socket
import stat
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import IO

from twinsieve.pipeline.basics.daemon_executor import DaemonExecutor
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import StateError, UsageError

_log = logging.getLogger("twinsieve")
_ANSWERS_S = 8.0
"""How long a start waits for a folder, which may be on a network file system that hangs."""
_MAX_SLOTS = 256
_NUMBER = re.compile(rb"[0-9a-f]{12}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_UNSET = re.compile(r"\$[({]?([A-Za-z_]\w*)")


class Slot:
    """A slot that this process holds; `name` is part of its member names and transactional ids."""

    def __init__(self, name: str, lock: IO[bytes] | None = None) -> None:
        self.name = name
        self._lock = lock

    def release(self) -> None:
        """Free the slot for another process."""
        if self._lock is not None:
            self._lock.close()


def slot_of(settings: Settings, member: str | None) -> Slot:
    """The slot with the name `member`; if `member` is None, the first free slot.

    Lock files are in the folder of the snapshots, if that is on this machine, because it outlives the process
    and often its container. Otherwise they are in a folder of this user below the folder for temporary files.

    raises: UsageError if Kafka does not accept the name, or if several processes are likely to have it
    """
    if member is not None:
        return Slot(_checked(member))
    folders = [Path(tempfile.gettempdir()) / f"twinsieve-{os.getuid()}"]
    if "://" not in settings.state.dir:
        folders.insert(0, Path(settings.state.dir) / settings.app)
    return take_slot(settings.app, folders)


def _checked(member: str) -> str:
    """The name, if Kafka accepts it. A name with a variable that was not filled in, as `$NAME`, is refused:
    all processes would have it, and would push each other out of the group again and again.

    raises: UsageError
    """
    if _NAME.fullmatch(member):
        return member
    shown, unset = f"--member is {member[:80]!r}", _UNSET.search(member)
    if unset is not None:
        advice = f"the value of {unset[1]} is not filled in; define it where the process starts"
    elif not member:
        advice = "is a variable unset? give each process a name of its own, or leave --member out"
    else:
        advice = "write up to 200 of the characters A-Z a-z 0-9 . _ -"
    raise UsageError(f"{shown}: {advice}")


def take_slot(app: str, folders: Sequence[Path]) -> Slot:
    """The first free slot in the first of these folders that can hold lock files.

    raises: StateError if no folder can, or if all slots are taken

    >>> import tempfile; folder = Path(tempfile.mkdtemp())
    >>> first, second = take_slot("a", [folder]), take_slot("a", [folder])
    >>> name = first.name; first.release()
    >>> third = take_slot("a", [folder])
    >>> second.name != name, third.name == name
    (True, True)
    >>> second.release(); third.release()
    """
    problems = []
    for folder in folders:
        thread = DaemonExecutor("slot")
        taken = thread.submit(_take, app, folder)
        thread.shutdown(wait=False)
        try:
            return taken.result(_ANSWERS_S)
        except TimeoutError:
            # Another process may use this name if the folder answers after all.
            taken.add_done_callback(_give_back)
            _log.warning("%s: does not answer; this process takes its name elsewhere", folder)
            problems.append(f"{folder}: does not answer")
        except OSError as error:
            problems.append(f"{folder}: no lock file can be made ({error})")
    raise StateError(f"{'; '.join(problems)}; name the process with --member")


def _give_back(taken: Future[Slot]) -> None:
    if taken.exception() is None:
        taken.result().release()


def _take(app: str, folder: Path) -> Slot:
    _own(folder)
    host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname())[:100] or "host"
    for number in range(_MAX_SLOTS):
        # Do not follow a link, because another user may have made it.
        opened = os.open(folder / f"{app}-{number}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        lock = os.fdopen(opened, "r+b", buffering=0)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return Slot(f"{host}-{_number_in(lock)}", lock)
        except OSError as error:
            lock.close()
            if not isinstance(error, BlockingIOError):
                raise
    raise StateError(f"{folder}: all {_MAX_SLOTS} slots are taken; name the process with --member")


def _own(folder: Path) -> None:
    """Make the folder if it is missing. In the folder for temporary files, refuse a folder that another user
    owns or may write to. raises: OSError"""
    for missing in [path for path in (folder, *folder.parents) if not path.is_dir()][::-1]:
        with suppress(FileExistsError):
            missing.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) and not folder.is_dir():
        raise NotADirectoryError("it is not a folder")
    if folder.parent == Path(tempfile.gettempdir()) and (
        stat.S_ISLNK(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022
    ):
        raise PermissionError("it belongs to another user, or others may write to it; remove it")


def _number_in(lock: IO[bytes]) -> str:
    """The number in the lock file. If the file is new, draw a number and write it; no other process can do
    the same meanwhile, because the caller holds the lock."""
    number = lock.read(64)
    if _NUMBER.fullmatch(number) is None:
        number = secrets.token_hex(6).encode()
        lock.seek(0)
        lock.truncate()
        lock.write(number)
        os.fsync(lock.fileno())
    return number.decode()
