"""One run at a time on one state."""

from __future__ import annotations

import fcntl
import os
import stat
from types import TracebackType
from typing import Self

from twinsieve.stages.errors import FileError


def lock_path(name: str) -> str:
    """Where the lock of a state file is: beside what the name points to."""
    return os.path.realpath(name) + ".lock"


class StateLock:
    """Held from here until `release`, or until the process ends, however it ends.

    name: the state file; the lock is a file `.lock` beside what it points to, gone when released
    raises: FileError when another run holds it, or where no lock can be made
    """

    def __init__(self, name: str) -> None:
        self._path = lock_path(name)
        self._descriptor: int | None = None
        try:
            while self._descriptor is None:
                self._descriptor = self._take()
        except BlockingIOError as error:
            raise FileError(f"{name}: another run is using it; let it end, or name another state") from error
        except OSError as error:
            raise FileError(f"{self._path}: cannot be locked: {error.strerror}") from error

    def _take(self) -> int | None:
        """The lock, or None if the file was removed by its last holder in this very moment."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            known = os.fstat(descriptor)
            if known.st_size or not stat.S_ISREG(known.st_mode):
                raise FileError(
                    f"{self._path}: is no lock of a state, but lies where one must be; move it away"
                )
            if os.path.samestat(known, os.stat(self._path)):
                taken, descriptor = descriptor, -1
                return taken
        except FileNotFoundError:
            pass
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        return None

    def release(self) -> None:
        """Nothing; another run may begin. Harmless when released before."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.unlink(self._path)
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
