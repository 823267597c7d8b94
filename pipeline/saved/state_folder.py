"""`StateFolder`: the local folder of one saved state, with its manifest, the files that it names, and a lock.

The folder is made by the first save. A save deletes files that the manifest does not name, so only these
folders are used: those with a manifest of ours, empty ones, and those in which a first save was killed. The
latter have a lock, no manifest, and only files with names as we give them.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO

from twinsieve.pipeline.files import FileError, refused_output
from twinsieve.pipeline.files.write import Output, followed
from twinsieve.pipeline.saved.manifest import FILE_NAME
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.stages.errors import StateError
from twinsieve.stages.formats import StateHeader

MANIFEST = "state"
_LOCK = "lock"
_OWN_NAME = re.compile(
    rf"""  {FILE_NAME} (\.[0-9a-f]{{16}}\.partial)?
        | leaders-[0-9]{{1,20}} \. (rows|entries)
        | \.state \. [0-9a-f]{{8}} \. part
    """,
    re.VERBOSE,
)
"""Names of files beside manifest and lock: those of a journal, of a leader book, an unfinished manifest."""


class StateFolder:
    """The folder of a saved state; nothing is made before `locked`.

    name: the folder as the user gave it; header: how its manifest begins
    path: the folder after links were followed; manifest: path of the manifest; storage: the files
    raises: FileError if a link of another user in a shared folder leads to it
    """

    def __init__(self, name: str, header: StateHeader) -> None:
        # Imported here, because it takes 0.2 s.
        from fsspec.implementations.local import LocalFileSystem

        self.name = name
        self._header = header
        try:
            self.path = str(followed(name))
        except OSError as error:
            raise FileError(f"{name}: cannot be used: {error.strerror}") from error
        self.manifest = os.path.join(self.path, MANIFEST)
        self.storage = Storage((LocalFileSystem(), self.path))
        self._wanted: set[str] | None = None
        """The files in the folder at the last save; None while it is not known which manifest is in place."""

    def check(self) -> bool:
        """Whether there is a manifest. raises: StateError if the folder is not ours; FileError"""
        try:
            names = set(os.listdir(self.path))
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise StateError(self._of_a_file()) from None
        except OSError as error:
            raise FileError(f"{self.name}: cannot be read: {error.strerror}") from error
        kind, new_start = self._header.kind, self._header.new_start
        if MANIFEST in names:
            if not self._begins_as_ours(self.manifest):
                raise StateError(f"{self.manifest}: is not {kind}; name the right folder, or {new_start}")
            return True
        if any(name != _LOCK and not _OWN_NAME.fullmatch(name) for name in names):
            raise StateError(
                f"{self.name}: is a folder with other files, not {kind}; name another folder, or a new one"
            )
        if names and _LOCK not in names:
            raise StateError(f"{self.manifest}: is missing; restore it from a copy, or {new_start}")
        return False

    def _of_a_file(self) -> str:
        if self._begins_as_ours(self.path):
            return (
                f"{self.name}: is a file that an earlier version of twinsieve wrote, and now a folder is "
                "written; name a new one to begin again, or use that version"
            )
        return f"{self.name}: is not {self._header.kind}, but a file; name a folder, or a new one"

    def _begins_as_ours(self, path: str) -> bool:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                return False
            with open(path, "rb") as stream:
                return stream.read(len(self._header.magic)) == self._header.magic
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Context manager: make the folder if there is none, and hold its lock. The system releases the lock
        when the process ends for any reason. At the end everything is deleted that was made since the last
        save, and without a save the folder too.

        raises: StateError if the folder is not ours; FileError if another process holds the lock, or if
            folder or lock cannot be made
        """
        self.check()
        made, descriptor = self._made_and_locked()
        try:
            # Another process may have saved here before the lock was taken.
            self.check()
            self.placed()
            yield
        finally:
            is_unused = not os.path.lexists(self.manifest)
            if is_unused:
                self.sweep(())
            elif self._wanted is not None:
                self.sweep(self._wanted)
            with suppress(OSError):
                os.unlink(self._lock_path)
            os.close(descriptor)
            if made and is_unused:
                with suppress(OSError):
                    os.rmdir(self.path)

    @property
    def _lock_path(self) -> str:
        return os.path.join(self.path, _LOCK)

    def _made_and_locked(self) -> tuple[bool, int]:
        """(whether this call made the folder, descriptor of the lock)."""
        made = False
        try:
            while True:
                made = self._make() or made
                with suppress(FileNotFoundError):  # another process has removed its unused folder
                    descriptor = self._lock()
                    if descriptor is not None:
                        return made, descriptor
        except BlockingIOError as error:
            raise FileError(
                f"{self.name}: another process is using it; let it end, or name another folder"
            ) from error
        except OSError as error:
            raise refused_output(self.name, error, os.path.dirname(self.path)) from error

    def _make(self) -> bool:
        """Make the folder and put its name on disk; False if it exists. raises: OSError"""
        parent = os.path.dirname(self.path)
        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            return False
        with ExitStack() as undo:
            undo.callback(os.rmdir, self.path)
            descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            undo.pop_all()
        return True

    def _lock(self) -> int | None:
        """The descriptor of the lock; None if its last holder deleted the file meanwhile, so try again."""
        descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with ExitStack() as undo:
            undo.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(descriptor)
            if status.st_size or not stat.S_ISREG(status.st_mode):
                raise FileError(
                    f"{self._lock_path}: a state needs this name for its lock, but this is another file; "
                    "move it away"
                )
            with suppress(FileNotFoundError):
                if os.path.samestat(status, os.stat(self._lock_path)):
                    undo.pop_all()
                    return descriptor
        return None

    def placing(self) -> None:
        """Note that a manifest is about to get its name. Until `placed`, nothing is deleted at the end of
        `locked`: after an interruption nobody knows which manifest has the name."""
        self._wanted = None

    def placed(self) -> None:
        """Note that the manifest has its name, and names files that are in the folder now."""
        self._wanted = set(os.listdir(self.path))

    def sweep(self, wanted: Collection[str]) -> None:
        """Delete the files of ours that are not `wanted`; they are from a run that failed or was killed.
        Call it only with the lock."""
        for name in os.listdir(self.path):
            if name not in wanted and _OWN_NAME.fullmatch(name):
                with suppress(OSError):
                    os.unlink(os.path.join(self.path, name))

    def open(self) -> BinaryIO:
        """A stream of the manifest. raises: FileError"""
        try:
            return open(self.manifest, "rb")
        except OSError as error:
            raise FileError(f"{self.name}: cannot be read: {error.strerror}") from error

    def output(self) -> Output:
        """The next manifest, a file of mode 0600 that gets its name when the caller places it. raises:
        FileError"""
        return Output(self.manifest, mode=0o600, packed=False)
