"""Snapshots of the index: its state and the log offset of that state, in a folder or at any fsspec address.

A snapshot is written under a temporary name and then moved to its final name, so that no incomplete snapshot
is ever read. The newest `keep` snapshots stay. In a folder, a snapshot is flushed to disk before it gets its
name, and files and folders are accessible to their owner only, whatever the umask, because they hold texts of
kept messages. Of a store's error only the type is reported, because its text may repeat an address or a key.
The name of a snapshot identifies its log: snapshots of a deleted log are neither read nor counted, whatever
their offsets are.

A snapshot consists of a header, the ledger, the sieve, and a checksum of all that. It is never held in memory
as a whole, and it crosses the network once in each direction. The checksum is computed while the sieve is
read, so damage is noticed only at the end.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
import re
import secrets
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import BinaryIO, Literal, NamedTuple, cast

from fsspec import AbstractFileSystem

from twinsieve.pipeline.index.ledger import Ledger, ledger_from_bytes
from twinsieve.stages.errors import StateError, shown

_HEADER = struct.Struct("<4sH16s16s16sqqQQ")
_MAGIC = b"TSVS"
_VERSION = 3
"""Format version of a snapshot; no other version is read."""
_DIGEST_SIZE = 32
_CHUNK_BYTES = 1 << 20
_NAME = re.compile(r"index-([0-9]{16})-([0-9a-f]{8})\.snapshot")
_PARTIAL = re.compile(r"index-[0-9]{16}-[0-9a-f]{8}\.snapshot\.[0-9a-f]+\.partial")
_ABANDONED = timedelta(days=1)
"""Age from which an incomplete snapshot counts as abandoned, if the file system has no locks."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Says which state a snapshot holds.

    next_offset: log offset of the next block
    decisions_from: offset in the decisions topic; a restore needs no decision below it
    log_id, decisions_id: topic ids of the log and of the decisions; scheme: hash of the fingerprint scheme
    """

    next_offset: int
    decisions_from: int
    log_id: bytes
    decisions_id: bytes
    scheme: bytes


@dataclass(frozen=True, slots=True)
class Snapshot(Stamp):
    """An index state to be written.

    ledger: result of `ledger_to_bytes`; sieve: function that writes the sieve to a stream
    """

    ledger: bytes
    sieve: Callable[[BinaryIO], None]


class Moved(NamedTuple):
    """Progress of a snapshot that is being read or written: bytes done, and size in bytes (0 while
    unknown)."""

    doing: Literal["reading", "writing"]
    done: int
    size: int


Watch = Callable[[Moved], None]
"""Called whenever bytes of a snapshot were read or written, in the thread that does so."""


def no_watch(moved: Moved) -> None:
    """A watch that does nothing."""


class UnreadableError(StateError):
    """A snapshot is damaged, or its store cannot read it: another snapshot or the log has to replace it."""


class SnapshotReader:
    """Reads a snapshot. Read the sieve first; then `ledger` checks that the whole snapshot is undamaged.

    stamp: which state it holds; trust nothing that was read before `ledger` has returned
    stream: the whole snapshot; it must stay open while the snapshot is read
    name: names the snapshot in errors
    raises: UnreadableError if it cannot be a complete snapshot
    """

    def __init__(self, stream: BinaryIO, name: str, watch: Watch = no_watch) -> None:
        self._stream = stream
        self._name = name
        self._watch = watch
        self._size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        self._start = stream.read(_HEADER.size)
        if self._size < _HEADER.size + _DIGEST_SIZE or self._start[:4] != _MAGIC:
            raise UnreadableError(
                f"{name}: is not a snapshot of an index; delete it if there is an older one or the whole log"
            )
        version = struct.unpack_from("<H", self._start, 4)[0]
        if version != _VERSION:
            raise UnreadableError(
                f"{name}: snapshot format {version}, this program reads {_VERSION}; "
                "delete it or run the program that wrote it"
            )
        _, _, scheme, log_id, decisions_id, next_offset, decisions_from, *sizes = _HEADER.unpack(self._start)
        self.stamp = Stamp(next_offset, decisions_from, log_id, decisions_id, scheme)
        self._ledger_size, self._sieve_size = sizes
        if self._size != _HEADER.size + sum(sizes) + _DIGEST_SIZE:
            raise self._damaged()
        self._ledger = b""
        self._rest: _Part | None = None

    def sieve(self) -> BinaryIO:
        """A stream of the sieve's bytes; each call begins at their beginning."""
        return cast("BinaryIO", self._begin())

    def ledger(self) -> Ledger:
        """The ledger; first reads the rest of the snapshot. raises: UnreadableError if that is damaged"""
        rest = self._rest or self._begin()
        while rest.read(_CHUNK_BYTES):
            pass
        end = _Part(self._stream, _DIGEST_SIZE, self._name, lambda _: None).read()
        if rest.digest.digest() != end:
            raise self._damaged()
        try:
            return ledger_from_bytes(self._ledger, self._name)
        except StateError as error:
            raise UnreadableError(str(error)) from error

    def _begin(self) -> _Part:
        """Read the ledger, which comes before the sieve; returns a stream of the sieve."""
        self._stream.seek(_HEADER.size)
        head = _Part(self._stream, self._ledger_size, self._name, lambda _: None)
        self._ledger = b"".join(iter(lambda: head.read(_CHUNK_BYTES), b""))
        rest = _Part(self._stream, self._sieve_size, self._name, self._moved)
        rest.digest.update(self._start)
        rest.digest.update(self._ledger)
        self._rest = rest
        return rest

    def _moved(self, left: int) -> None:
        self._watch(Moved("reading", self._size - left, self._size))

    def _damaged(self) -> UnreadableError:
        return UnreadableError(
            f"{self._name}: the snapshot is damaged, its checksum or size differs; "
            "delete it if there is an older one or the whole log"
        )


class Stored(NamedTuple):
    """A snapshot that was written: its name in the store, and its size in bytes."""

    name: str
    size: int


class SnapshotStore:
    """Snapshots of one app, newest first.

    place: a file system and a folder in it; keep: how many snapshots are kept
    describe: returns the text for an error of a store that is not a local folder
    """

    def __init__(
        self,
        place: tuple[AbstractFileSystem, str],
        app: str,
        keep: int,
        describe: Callable[[Exception], str] = lambda error: type(error).__name__,
    ) -> None:
        self._files, folder = place
        self._folder = f"{folder.rstrip('/')}/{app}"
        self._keep = keep
        protocol = self._files.protocol
        self._is_local = "file" in ((protocol,) if isinstance(protocol, str) else protocol)
        self._describe = describe
        self._address = (
            self._folder if self._is_local else shown(str(self._files.unstrip_protocol(self._folder)))
        )

    def write(self, snapshot: Snapshot, watch: Watch = no_watch) -> Stored:
        """Store a snapshot and delete the oldest ones beyond `keep`; returns its name and size.

        raises: StateError if it cannot be written (no permission, disk full); the older snapshots stay
        """
        name = f"{self._folder}/index-{snapshot.next_offset:016d}-{_short(snapshot.log_id)}.snapshot"
        partial = f"{name}.{secrets.token_hex(8)}.partial"
        try:
            with self._partial(partial) as stream:
                size = _write(snapshot, stream, watch)
                if self._is_local:
                    _put_on_disk(stream, partial, name)
            if not self._is_local:
                self._files.mv(partial, name)
            for _, old in self._listed(snapshot.log_id)[self._keep :]:
                self._files.rm(old)
            self._sweep()
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            with suppress(Exception):
                self._files.rm(partial)
            raise StateError(
                f"{self._address}: snapshot cannot be written ({self._kind(error)}); free space or fix "
                "permissions; the index continues with its older snapshot"
            ) from None
        return Stored(name, size)

    def _partial(self, partial: str) -> BinaryIO:
        if self._is_local:
            _make_folder(self._folder)
            return private_file(partial)
        self._files.makedirs(self._folder, exist_ok=True)
        return cast("BinaryIO", self._files.open(partial, "wb"))

    def _kind(self, error: Exception) -> str:
        """Text for an error: for a local folder the text of the operating system, else that of `describe`."""
        if isinstance(error, StateError):
            return str(error)
        is_here = self._is_local and isinstance(error, OSError) and error.strerror
        return str(error.strerror) if is_here and isinstance(error, OSError) else self._describe(error)

    def _sweep(self) -> None:
        """Remove incomplete snapshots of killed processes; leave those that a process is writing."""
        for name in map(str, self._files.ls(self._folder, detail=False)):
            if _PARTIAL.fullmatch(name.rsplit("/", 1)[-1]):
                if self._is_local:
                    _remove_abandoned(name)
                    continue
                with suppress(NotImplementedError, FileNotFoundError):
                    modified = self._files.modified(name)
                    aware = modified if modified.tzinfo else modified.replace(tzinfo=UTC)
                    if datetime.now(UTC) - aware > _ABANDONED:
                        self._files.rm(name)

    def kept_offsets(self, log_id: bytes) -> list[int]:
        """Log offsets of the snapshots of a log, newest first. A restore needs no block below the last of
        them."""
        return [offset for offset, _ in self._listed(log_id)]

    def read(self, log_id: bytes, watch: Watch = no_watch) -> Iterator[SnapshotReader | UnreadableError]:
        """A reader for each snapshot of a log, newest first, or the error why it cannot be used. A reader
        works until the next one is requested."""
        for _, name in self._listed(log_id):
            with ExitStack() as stack:
                try:
                    shown_as = f"{self._address}/{name.rsplit('/', 1)[-1]}"
                    stream = stack.enter_context(self._files.open(name, "rb"))
                    snapshot: SnapshotReader | UnreadableError = SnapshotReader(stream, shown_as, watch)
                except UnreadableError as error:
                    snapshot = error
                except Exception as error:  # noqa: BLE001 (as in `write`)
                    snapshot = _unreadable(shown_as, self._kind(error))
                yield snapshot

    def _listed(self, log_id: bytes) -> list[tuple[int, str]]:
        try:
            # A cached listing would not show what other processes have written or deleted since.
            self._files.invalidate_cache()
            names = self._files.ls(self._folder, detail=False)
        except FileNotFoundError:
            return []
        except Exception as error:  # noqa: BLE001 (as in `write`)
            message = f"{self._address}: cannot be listed ({self._kind(error)}); fix permissions"
            raise StateError(message, lasting=False) from None
        matches = [(_NAME.fullmatch(str(name).rsplit("/", 1)[-1]), str(name)) for name in names]
        ours = _short(log_id)
        return sorted(
            ((int(match[1]), name) for match, name in matches if match and match[2] == ours), reverse=True
        )


def private_file(path: str) -> BinaryIO:
    """A new file that only this user can access. It is locked while it is open: the lock shows that a process
    is writing it.

    A process id in its name could not show that, because processes in two containers may have the same id and
    do not see each other. They do see a lock on a shared file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        file = os.fdopen(os.open(path, flags, 0o600), "w+b")
        # Some network file systems have no locks; there the age of an incomplete snapshot decides.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        # Between open and lock, another process's `_sweep` has removed the file: make it again.
        file.close()


def _put_on_disk(file: BinaryIO, partial: str, name: str) -> None:
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


def _make_folder(folder: str) -> None:
    """Make the folder and its missing parents, accessible to this user only. raises: OSError"""
    if not os.path.isdir(folder):
        _make_folder(os.path.dirname(folder))
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def _remove_abandoned(partial: str) -> None:
    """Remove an incomplete snapshot of this user, unless a process is writing it."""
    try:
        opened = os.open(partial, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # it has its final name by now, belongs to another user, or is a link
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
        # Remove it only if the name still belongs to the opened file: it may have its final name by now.
        if os.path.lexists(partial) and os.path.samestat(os.lstat(partial), status):
            os.unlink(partial)
    except FileNotFoundError:
        return
    finally:
        os.close(opened)


def _short(log_id: bytes) -> str:
    return hashlib.blake2b(log_id, digest_size=4).hexdigest()


def _unreadable(name: str, kind: str) -> UnreadableError:
    """The error for a snapshot that its store failed to read."""
    return UnreadableError(f"{name}: cannot be read ({kind}); fix permissions or delete it", lasting=False)


def _write(snapshot: Snapshot, stream: BinaryIO, watch: Watch = no_watch) -> int:
    """Write a snapshot; returns its size in bytes. The sieve writes itself twice, the first time only to
    count its bytes, because the header comes before it and holds its length."""
    counted = _Counted(watch)
    snapshot.sieve(cast("BinaryIO", counted))
    size = _HEADER.size + len(snapshot.ledger) + counted.count + _DIGEST_SIZE
    hashed = _Hashed(stream, size, watch)
    hashed.write(
        _HEADER.pack(
            _MAGIC, _VERSION, snapshot.scheme, snapshot.log_id, snapshot.decisions_id,
            snapshot.next_offset, snapshot.decisions_from, len(snapshot.ledger), counted.count,
        )
    )  # fmt: skip
    hashed.write(snapshot.ledger)
    snapshot.sieve(cast("BinaryIO", hashed))
    stream.write(hashed.digest.digest())
    return size


def _kind_of(error: Exception) -> str:
    """Short text for an error from a stream of any store: the errno name of an OSError, else the type."""
    return (
        errno.errorcode.get(error.errno or 0, type(error).__name__)
        if isinstance(error, OSError)
        else type(error).__name__
    )


class _Counted:
    """A stream that counts the bytes written to it, and discards them."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.count = 0

    def write(self, data: bytes) -> int:
        size = memoryview(data).nbytes
        self.count += size
        self._watch(Moved("writing", 0, 0))
        return size


class _Hashed:
    """A stream that passes written bytes on to another stream, and computes their digest."""

    def __init__(self, stream: BinaryIO, size: int, watch: Watch) -> None:
        self._stream = stream
        self._size = size
        self._watch = watch
        self._done = 0
        self.digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        size = self._stream.write(data)
        self._done += memoryview(data).nbytes
        self._watch(Moved("writing", self._done, self._size))
        return size


class _Part:
    """A stream of the next `left` bytes of another stream. It computes the digest of the bytes that were
    read, and raises UnreadableError for any error of a store.

    moved: called after each read with the number of bytes that are left
    """

    def __init__(self, stream: BinaryIO, left: int, name: str, moved: Callable[[int], None]) -> None:
        self._stream = stream
        self._left = left
        self._name = name
        self._moved = moved
        self.digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        try:
            data = self._stream.read(wanted)
        except Exception as error:  # noqa: BLE001 (as in `write`)
            raise _unreadable(self._name, _kind_of(error)) from None
        self._left -= len(data)
        self.digest.update(data)
        self._moved(self._left)
        return data
