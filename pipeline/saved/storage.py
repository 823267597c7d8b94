"""`Storage`: one folder of files that hold texts of kept messages, on this machine or at any fsspec address.

A file is written under a temporary name and then moved to its final name, so that no incomplete file is
ever read. In a local folder it is flushed to disk before it gets its name, and files and folders are
accessible to their owner only, whatever the umask. Of a store's error only the type is reported, because its
text may repeat an address or a key.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, BinaryIO, cast

from twinsieve.pipeline.saved.signing import Signing
from twinsieve.pipeline.saved.store_calls import CalledStream, StoreCalls
from twinsieve.stages.errors import StateError, shown

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_ADVICE = {
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit for open files"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "fix permissions"),
    errno.EROFS: "make the file system writable",
}
PARTIAL = ".partial"
"""Ending of the temporary name of a file that is being written."""
_ABANDONED = timedelta(days=1)
"""Age from which an unfinished or unnamed file counts as abandoned, if the file system has no locks."""


class Storage:
    """The files of one folder; all names are names in that folder.

    place: a file system and the folder in it
    describe: returns the text for an error of a store that is not a local folder
    calls: notes the calls to the file system
    is_mapped: whether segments in it are mapped where they are, and not a copy of them in scratch space. A
        look-up that touches a map waits for the file system, so it must be on a local disk
    signing: how its files are signed; None: not at all
    """

    def __init__(
        self,
        place: tuple[AbstractFileSystem, str],
        describe: Callable[[Exception], str] = lambda error: type(error).__name__,
        calls: StoreCalls | None = None,
        signing: Signing | None = None,
    ) -> None:
        self.signing = signing or Signing()
        self._files, folder = place
        self.folder = folder.rstrip("/")
        protocol = self._files.protocol
        self.is_local = "file" in ((protocol,) if isinstance(protocol, str) else protocol)
        self.is_mapped = self.is_local
        self._describe = describe
        self.calls = calls or StoreCalls()
        self.address = self.folder if self.is_local else shown(str(self._files.unstrip_protocol(self.folder)))

    def path(self, name: str) -> str:
        """The path of a file, as the file system takes it."""
        return f"{self.folder}/{name}"

    def shown(self, name: str) -> str:
        """The path of a file, for messages."""
        return f"{self.address}/{name}"

    def create(self, name: str) -> NewFile:
        """A new file that gets this name when it is complete. raises: errors of the file system"""
        partial = f"{name}.{secrets.token_hex(8)}{PARTIAL}"
        with self._calling("create a file"):
            if self.is_local:
                make_folder(self.folder)
                stream = private_file(self.path(partial))
            else:
                self._files.makedirs(self.folder, exist_ok=True)
                stream = cast("BinaryIO", self._files.open(self.path(partial), "wb"))
        return NewFile(self, partial, name, self._called(stream))

    def _calling(self, doing: str) -> AbstractContextManager[None]:
        return self.calls.doing(self.address, doing)

    def _called(self, stream: BinaryIO) -> BinaryIO:
        return cast("BinaryIO", CalledStream(stream, self.calls, self.address))

    def open(self, name: str) -> BinaryIO:
        """A stream of the file's bytes. raises: errors of the file system"""
        with self._calling("open a file"):
            return self._called(cast("BinaryIO", self._files.open(self.path(name), "rb")))

    def names(self) -> list[str]:
        """The names of all files; none if there is no such folder. raises: StateError"""
        try:
            # A cached listing would not show what other processes have written or deleted since.
            self._files.invalidate_cache()
            with self._calling("list the files"):
                paths = self._files.ls(self.folder, detail=False)
        except FileNotFoundError:
            return []
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            message = f"{self.address}: cannot be listed ({self.kind_of(error)}); "
            message += advice_on(error, "fix permissions")
            raise StateError(message, lasting=False) from None
        return [str(path).rsplit("/", 1)[-1] for path in paths]

    def shares_device(self, folder: str) -> bool:
        """Whether this is a local folder on the file system that this other folder is on. It need not exist
        yet."""
        with suppress(OSError), self._calling("look up the folder"):
            place = self.folder
            while not os.path.exists(place) and place != os.path.dirname(place):
                place = os.path.dirname(place)
            return self.is_local and os.stat(place).st_dev == os.stat(folder).st_dev
        return False

    def rename(self, old: str, new: str) -> None:
        """Rename a complete file of a store that is not local. raises: errors of the file system"""
        with self._calling("rename a file"):
            self._files.mv(self.path(old), self.path(new))

    def remove(self, name: str) -> None:
        """Delete a file, unless another process has done it. raises: errors of the file system"""
        with suppress(FileNotFoundError), self._calling("delete a file"):
            self._files.rm(self.path(name))

    def sweep(self, name: str) -> None:
        """Delete a file that no process of this machine is writing, or that nobody wrote for a day."""
        if self.is_local:
            with self._calling("delete a file"):
                _remove_abandoned(self.path(name))
            return
        with suppress(NotImplementedError, FileNotFoundError):
            modified = self._files.modified(self.path(name))
            aware = modified if modified.tzinfo else modified.replace(tzinfo=UTC)
            if datetime.now(UTC) - aware > _ABANDONED:
                self.remove(name)

    def kind_of(self, error: Exception) -> str:
        """Text for an error: for a local folder the text of the operating system, else that of `describe`."""
        if isinstance(error, StateError):
            return str(error)
        is_here = self.is_local and isinstance(error, OSError) and error.strerror
        return str(error.strerror) if is_here and isinstance(error, OSError) else self._describe(error)


def advice_on(error: BaseException, usual: str) -> str:
    """What to do about a failed call of a file system or store. usual: the answer if the error does not say

    >>> advice_on(OSError(errno.EMFILE, "Too many open files"), "free space or fix permissions")
    'raise the limit for open files'
    """
    number = error.errno if isinstance(error, OSError) else None
    return _ADVICE.get(number or 0, usual)


class NewFile:
    """A file that is being written.

    name: its name when it is complete; stream: takes its bytes
    In a local folder the file is locked until `release`, which protects it from `Storage.sweep`.
    """

    def __init__(self, storage: Storage, partial: str, name: str, stream: BinaryIO) -> None:
        self._storage = storage
        self._partial = partial
        self.name = name
        self.stream = stream
        # Not `__del__`: of objects that refer to each other, the stream could be thrown away first.
        self._release = weakref.finalize(self, _close, stream)

    def finish(self) -> None:
        """Put the complete file on disk and give it its name. raises: errors of the file system"""
        if self._storage.is_local:
            with self._storage.calls.doing(self._storage.address, "put a file on disk"):
                put_on_disk(self.stream, self._storage.path(self._partial), self._storage.path(self.name))
        else:
            self.stream.close()
            self._storage.rename(self._partial, self.name)

    def discard(self) -> None:
        """Delete the file, complete or not."""
        self.discard_partial()
        with suppress(Exception):
            self._storage.remove(self.name)

    def discard_partial(self) -> None:
        """Delete the file if it is not complete; an older file of its name stays."""
        with suppress(Exception):
            self._storage.remove(self._partial)
        self.release()

    def release(self) -> None:
        """Close the file and give up its lock. This happens too when the object is thrown away."""
        self._release()


def _close(stream: BinaryIO) -> None:
    with suppress(Exception):
        stream.close()


def private_file(path: str) -> BinaryIO:
    """A new file that only this user can access. It is locked while it is open: the lock shows that a process
    is writing it.

    A process id in its name could not show that, because processes in two containers may have the same id and
    do not see each other. They do see a lock on a shared file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        file = os.fdopen(os.open(path, flags, 0o600), "w+b")
        # Some network file systems have no locks; there the age of an unfinished file decides.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        # Between open and lock, another process's `sweep` has removed the file: make it again.
        file.close()


def put_on_disk(file: BinaryIO, partial: str, name: str) -> None:
    """Flush a complete file to disk, so that it survives a power cut, and give it its name. raises:
    OSError"""
    file.flush()
    os.fsync(file.fileno())
    os.replace(partial, name)
    folder = os.open(os.path.dirname(name), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_folder(folder: str) -> None:
    """Make the folder and its missing parents, accessible to this user only. raises: OSError"""
    if not os.path.isdir(folder):
        make_folder(os.path.dirname(folder))
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def _remove_abandoned(path: str) -> None:
    """Remove a file of this user, unless a process holds its lock."""
    try:
        opened = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # it has another name by now, belongs to another user, or is a link
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        except OSError:
            if datetime.now(UTC) - datetime.fromtimestamp(status.st_mtime, UTC) < _ABANDONED:
                return
        # Remove it only if the name still belongs to the opened file: it may have another name by now.
        if os.path.lexists(path) and os.path.samestat(os.lstat(path), status):
            os.unlink(path)
    except FileNotFoundError:
        return
    finally:
        os.close(opened)
