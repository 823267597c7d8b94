"""Snapshots of the index: its state and the log offset it is true for, in a folder or at any fsspec address.

A snapshot is written beside its final name and moved there, so that a half one is never found; `keep` of them
stay. In a folder it is on disk before it has its name, and what is made there is for its owner alone,
whatever the umask: it holds texts of kept messages. The error of a store is reported by its kind
alone, as its text may repeat an address or a key. The name of a snapshot names its log: snapshots of a
deleted log are neither read nor counted, whatever their offsets are.

As bytes it is a header, the ledger, the sieve, and a checksum of it all. Neither writing nor reading holds it
as a whole, and it crosses the network once each way: who reads the sieve reads what the checksum is of, so
a damaged one is known when its end is read.
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
"""Of the versions that are read; its open verdicts have no tags."""
_DIGEST_SIZE = 32
_CHUNK_BYTES = 1 << 20
_NAME = re.compile(r"index-([0-9]{16})-([0-9a-f]{8})\.snapshot")
_PARTIAL = re.compile(r"index-[0-9]{16}-[0-9a-f]{8}\.snapshot\.[0-9a-f]+\.partial")
_ABANDONED = timedelta(days=1)
"""Age from which a half snapshot counts as abandoned, if the file system has no locks."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a snapshot is of.

    next_offset: log offset of the next block; decisions_from: no decision of a later block lies below it
    log_id, decisions_id: topic ids of what it continues; scheme: hash of the fingerprint scheme
    """

    next_offset: int
    decisions_from: int
    log_id: bytes
    decisions_id: bytes
    scheme: bytes


@dataclass(frozen=True, slots=True)
class Snapshot(Stamp):
    """An index state to be written.

    ledger: as `ledger_to_bytes` gives it; sieve: writes its part to a stream
    """

    ledger: bytes
    sieve: Callable[[BinaryIO], None]


class Moved(NamedTuple):
    """How far a snapshot has come that is being read or written; size: 0 while unknown."""

    doing: Literal["reading", "writing"]
    done: int
    size: int


Watch = Callable[[Moved], None]
"""Called whenever bytes of a snapshot have moved, in the thread that moves them."""


def no_watch(moved: Moved) -> None:
    """A watch that does nothing."""


class UnreadableError(StateError):
    """A snapshot is damaged, or its store cannot read it: another one or the log has to do."""


class SnapshotReader:
    """A snapshot in its store. Its sieve is read first; then `ledger` says whether all of it is whole.

    stamp: what it is of; nothing of it counts before `ledger` has returned
    stream: of the whole snapshot; only as long as it is open can anything be read
    raises: UnreadableError where it cannot be a whole snapshot
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
                f"{name}: is not a snapshot of an index; delete it, an older one or the log will do"
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
        """A stream of the bytes that its sieve wrote, from their beginning at each call."""
        return cast("BinaryIO", self._begin())

    def ledger(self) -> Ledger:
        """Its ledger, after the rest of the snapshot was read. raises: UnreadableError where it is damaged"""
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
        """Read the ledger, which stands in front; returns where the sieve begins."""
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
            f"{self._name}: checksum or size differs, it is damaged; "
            "delete it, an older one or the log will do"
        )


class Stored(NamedTuple):
    """A snapshot that was written: its name in the store, and its bytes."""

    name: str
    size: int


class SnapshotStore:
    """Snapshots of one app, newest first.

    place: a file system and the folder there; keep: how many snapshots are kept
    describe: text for an error of a store that is not a local folder
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
        """Store one and forget the oldest beyond `keep`; returns what is where now.

        raises: StateError when the folder cannot be written (no permission, disk full); the older ones stay
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
        """Text for an error: the text of the system for a local folder, else as `describe`."""
        if isinstance(error, StateError):
            return str(error)
        is_here = self._is_local and isinstance(error, OSError) and error.strerror
        return str(error.strerror) if is_here and isinstance(error, OSError) else self._describe(error)

    def _sweep(self) -> None:
        """Remove half snapshots of killed processes; leave those that a process is writing."""
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
        """Log offsets of the snapshots of a log, the newest first; below the last one nothing is needed for a
        restore."""
        return [offset for offset, _ in self._listed(log_id)]

    def read(self, log_id: bytes, watch: Watch = no_watch) -> Iterator[SnapshotReader | UnreadableError]:
        """Each snapshot of a log from the newest on, or why it cannot be used. It can be read until the next
        one is asked for."""
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
            # What another process has written or deleted since is not in a listing that a store remembers.
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
    """A new file for this user alone, locked while it is open: the lock shows that a process is writing it.

    Processes in two containers may have one number and not see each other; a lock on the file they share.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        file = os.fdopen(os.open(path, flags, 0o600), "w+b")
        # Some network file systems have no locks; there the age of a half snapshot counts.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        # The sweep of another process came between the two lines.
        file.close()


def _put_on_disk(file: BinaryIO, partial: str, name: str) -> None:
    """Give a whole file its name, once it would outlive a power cut. raises: OSError"""
    file.flush()
    os.fsync(file.fileno())
    os.replace(partial, name)
    folder = os.open(os.path.dirname(name), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _make_folder(folder: str) -> None:
    """Make the folder, and those above it that are missing, for this user alone. raises: OSError"""
    if not os.path.isdir(folder):
        _make_folder(os.path.dirname(folder))
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def _remove_abandoned(partial: str) -> None:
    """Remove a half snapshot of this user that no process writes."""
    try:
        opened = os.open(partial, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # it has its name by now, belongs to somebody else, or is a link
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
        # What has its final name since it was listed is another name's file.
        if os.path.lexists(partial) and os.path.samestat(os.lstat(partial), status):
            os.unlink(partial)
    except FileNotFoundError:
        return
    finally:
        os.close(opened)


def _short(log_id: bytes) -> str:
    return hashlib.blake2b(log_id, digest_size=4).hexdigest()


def _unreadable(name: str, kind: str) -> UnreadableError:
    """What to say of a snapshot whose store failed."""
    return UnreadableError(f"{name}: cannot be read ({kind}); fix permissions or delete it", lasting=False)


def _write(snapshot: Snapshot, stream: BinaryIO, watch: Watch = no_watch) -> int:
    """Write a snapshot, and return how many bytes it has. The sieve is asked twice, for the header comes
    before it and holds its length."""
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
    """Text for an error while a stream is read: the stream may be of any store."""
    return (
        errno.errorcode.get(error.errno or 0, type(error).__name__)
        if isinstance(error, OSError)
        else type(error).__name__
    )


class _Counted:
    """A stream that counts and forgets what is written to it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.count = 0

    def write(self, data: bytes) -> int:
        size = memoryview(data).nbytes
        self.count += size
        self._watch(Moved("writing", 0, 0))
        return size


class _Hashed:
    """A stream that passes on what is written to it, and knows its digest."""

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
    """The next `left` bytes of a stream, and the digest of those that were read; whatever a store raises is
    an UnreadableError.

    moved: called with the bytes that are left, after each read
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
