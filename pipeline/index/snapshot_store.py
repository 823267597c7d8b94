"""Snapshots of the index: its state and the log offset it is true for, in a folder or at any fsspec address.

A snapshot is written beside its final name and moved there, so that a half one is never found; `keep` of them
stay. Files are private to their owner (they hold texts of kept messages). Their names tell the log they
belong to: those of a log that was deleted are neither read nor counted, however high their offsets are.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import BinaryIO, cast

from fsspec import AbstractFileSystem

from twinsieve.pipeline.index.ledger import Ledger, ledger_from_bytes
from twinsieve.stages.errors import StateError

_HEADER = struct.Struct("<4sH16s16s16sqqQQ")
_MAGIC = b"TSVS"
_VERSION = 3
"""Of the versions that are read; its open verdicts have no tags."""
_DIGEST_SIZE = 32
_CHUNK_BYTES = 1 << 20
_NAME = re.compile(r"index-([0-9]{16})-([0-9a-f]{8})\.snapshot")
_PARTIAL = re.compile(r"index-[0-9]{16}-[0-9a-f]{8}\.snapshot\.[0-9]+\.partial")


@dataclass(frozen=True, slots=True)
class _Stamped:
    """What a snapshot is of.

    at: log offset of the next block; decisions_from: no decision of a later block lies below it
    log_id, decisions_id: topic ids of what it continues; scheme: hash of the fingerprint scheme
    """

    at: int
    decisions_from: int
    log_id: bytes
    decisions_id: bytes
    scheme: bytes


@dataclass(frozen=True, slots=True)
class Snapshot(_Stamped):
    """An index state to be written.

    ledger: as `ledger_to_bytes` gives it; sieve: writes its part to a stream
    """

    ledger: bytes
    sieve: Callable[[BinaryIO], None]


@dataclass(frozen=True, slots=True)
class FoundSnapshot(_Stamped):
    """A snapshot that was read and is whole.

    sieve: a stream of the bytes that its sieve wrote, from their beginning at each call; only until the next
        snapshot is asked for
    """

    ledger: Ledger
    sieve: Callable[[], BinaryIO]


class SnapshotStore:
    """Snapshots of one app, newest first.

    place: a file system and the folder there; keep: how many snapshots are kept
    """

    def __init__(self, place: tuple[AbstractFileSystem, str], app: str, keep: int) -> None:
        self._files, folder = place
        self._folder = f"{folder.rstrip('/')}/{app}"
        self._keep = keep
        protocol = self._files.protocol
        self._is_local = "file" in ((protocol,) if isinstance(protocol, str) else protocol)
        self._address = self._folder if self._is_local else str(self._files.unstrip_protocol(self._folder))

    def write(self, snapshot: Snapshot) -> str:
        """Store one and forget the oldest beyond `keep`; returns where it is.

        raises: StateError when the folder cannot be written (no permission, disk full); the older ones stay
        """
        name = f"{self._folder}/index-{snapshot.at:016d}-{_short(snapshot.log_id)}.snapshot"
        partial = f"{name}.{os.getpid()}.partial"
        try:
            self._files.makedirs(self._folder, exist_ok=True)
            with self._files.open(partial, "wb") as stream:
                if self._is_local:
                    os.chmod(partial, 0o600)
                _write(snapshot, stream)
            self._files.mv(partial, name)
            for _, old in self._found(snapshot.log_id)[self._keep :]:
                self._files.rm(old)
            self._sweep()
        except Exception as error:
            # Stores raise what they like beside OSError: errors of HTTP, of credentials, of their own.
            with suppress(Exception):
                self._files.rm(partial)
            raise StateError(
                f"{self._address}: snapshot cannot be written ({error}); free space or fix permissions; "
                "the index goes on with its older snapshot"
            ) from error
        return name

    def _sweep(self) -> None:
        """Half snapshots of processes that were killed take no room for ever."""
        for name in self._files.ls(self._folder, detail=False):
            if _PARTIAL.fullmatch(str(name).rsplit("/", 1)[-1]):
                self._files.rm(str(name))

    def kept_at(self, log_id: bytes) -> list[int]:
        """Log offsets of the snapshots of a log, the newest first; below the last one nothing is needed for a
        restore."""
        return [at for at, _ in self._found(log_id)]

    def read(self, log_id: bytes) -> Iterator[FoundSnapshot | StateError]:
        """Each snapshot of a log from the newest on, or why it cannot be used.

        It is never in memory as a whole: it is read once to see that it is whole, and again by who uses it.
        """
        for _, name in self._found(log_id):
            with ExitStack() as stack:
                try:
                    stream = stack.enter_context(self._files.open(name, "rb"))
                    found: FoundSnapshot | StateError = _read(stream, name)
                except StateError as error:
                    found = error
                except Exception as error:  # noqa: BLE001 (as in `write`)
                    found = _unreadable(name, error)
                yield found

    def _found(self, log_id: bytes) -> list[tuple[int, str]]:
        try:
            # What another process has written or deleted since is not in a listing that a store remembers.
            self._files.invalidate_cache()
            names = self._files.ls(self._folder, detail=False)
        except FileNotFoundError:
            return []
        except Exception as error:
            raise StateError(f"{self._address}: cannot be listed ({error}); fix permissions") from error
        matches = [(_NAME.fullmatch(str(name).rsplit("/", 1)[-1]), str(name)) for name in names]
        ours = _short(log_id)
        return sorted(
            ((int(match[1]), name) for match, name in matches if match and match[2] == ours), reverse=True
        )


def _short(log_id: bytes) -> str:
    return hashlib.blake2b(log_id, digest_size=4).hexdigest()


def _unreadable(name: str, error: Exception) -> StateError:
    return StateError(f"{name}: cannot be read ({error}); fix permissions or delete it")


class _Counted:
    """A stream that counts and forgets what is written to it."""

    def __init__(self) -> None:
        self.count = 0

    def write(self, data: bytes) -> int:
        size = memoryview(data).nbytes
        self.count += size
        return size


class _Hashed:
    """A stream that passes on what is written to it, and knows its digest."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._stream.write(data)


class _Part:
    """The next `left` bytes of a stream; whatever a store raises is a StateError."""

    def __init__(self, stream: BinaryIO, left: int, name: str) -> None:
        self._stream = stream
        self._left = left
        self._name = name

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        try:
            data = self._stream.read(wanted)
        except Exception as error:
            raise _unreadable(self._name, error) from error
        self._left -= len(data)
        return data


def _write(snapshot: Snapshot, stream: BinaryIO) -> None:
    """Write a snapshot without ever holding it: the sieve is asked twice, for the header comes before it and
    holds its length."""
    counted = _Counted()
    snapshot.sieve(cast("BinaryIO", counted))
    hashed = _Hashed(stream)
    hashed.write(
        _HEADER.pack(
            _MAGIC, _VERSION, snapshot.scheme, snapshot.log_id, snapshot.decisions_id,
            snapshot.at, snapshot.decisions_from, len(snapshot.ledger), counted.count,
        )
    )  # fmt: skip
    hashed.write(snapshot.ledger)
    snapshot.sieve(cast("BinaryIO", hashed))
    stream.write(hashed.digest.digest())


def _read(stream: BinaryIO, name: str) -> FoundSnapshot:
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    start = stream.read(_HEADER.size)
    if size < _HEADER.size + _DIGEST_SIZE or start[:4] != _MAGIC:
        raise StateError(f"{name}: is no snapshot of an index; delete it, an older one or the log will do")
    version = struct.unpack_from("<H", start, 4)[0]
    if version != _VERSION:
        raise StateError(
            f"{name}: snapshot format {version}, this program reads {_VERSION}; "
            "delete it or run the program that wrote it"
        )
    content = _Part(stream, size - len(start) - _DIGEST_SIZE, name)
    digest = hashlib.blake2b(start, digest_size=_DIGEST_SIZE)
    while chunk := content.read(_CHUNK_BYTES):
        digest.update(chunk)
    if digest.digest() != stream.read(_DIGEST_SIZE):
        raise StateError(
            f"{name}: checksum differs, it is damaged; delete it, an older one or the log will do"
        )
    _, _, scheme, log_id, decisions_id, at, decisions_from, ledger, sieve = _HEADER.unpack(start)

    def open_sieve() -> BinaryIO:
        stream.seek(_HEADER.size + ledger)
        return cast("BinaryIO", _Part(stream, sieve, name))

    stream.seek(_HEADER.size)
    return FoundSnapshot(
        at, decisions_from, log_id, decisions_id, scheme,
        ledger_from_bytes(stream.read(ledger), name), open_sieve,
    )  # fmt: skip
