"""Snapshots of the index: its state and the log offset it is true for, in a folder or at any fsspec address.

A snapshot is written beside its final name and moved there, so that a half one is never found; `keep` of them
stay. Files are private to their owner (they hold texts of kept messages).
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

import fsspec
from fsspec import AbstractFileSystem

from pipeline.sessions import Ledger
from pipeline.sessions_state import ledger_from_bytes
from stages.errors import StateError

_HEADER = struct.Struct("<4sH16s16s16sqqQQ")
_MAGIC = b"TSVS"
_VERSION = 1
_DIGEST_SIZE = 32
_NAME = re.compile(r"index-([0-9]{16})\.snapshot")
_PARTIAL = re.compile(r"index-[0-9]{16}\.snapshot\.[0-9]+\.partial")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An index state to be written.

    at: log offset of the next block; decisions_from: no decision of a later block lies below it
    log_id, decisions_id: topic ids of what it continues; scheme: hash of the fingerprint scheme
    ledger: as `ledger_to_bytes` gives it; sieve: writes its part to a stream
    """

    at: int
    decisions_from: int
    log_id: bytes
    decisions_id: bytes
    scheme: bytes
    ledger: bytes
    sieve: Callable[[BinaryIO], None]


@dataclass(frozen=True, slots=True)
class FoundSnapshot:
    """A `Snapshot` that was read; sieve: the bytes it wrote."""

    at: int
    decisions_from: int
    log_id: bytes
    decisions_id: bytes
    scheme: bytes
    ledger: Ledger
    sieve: bytes


class SnapshotStore:
    """Snapshots of one app, newest first."""

    def __init__(self, address: str, app: str, keep: int = 2) -> None:
        self._files: AbstractFileSystem
        self._files, folder = fsspec.core.url_to_fs(address)
        self._folder = f"{folder.rstrip('/')}/{app}"
        self._address = f"{address.rstrip('/')}/{app}"
        self._keep = keep

    def write(self, snapshot: Snapshot) -> str:
        """Store one and forget the oldest beyond `keep`; returns where it is.

        raises: StateError when the folder cannot be written (no permission, disk full); the older ones stay
        """
        name = f"{self._folder}/index-{snapshot.at:016d}.snapshot"
        partial = f"{name}.{os.getpid()}.partial"
        data = _to_bytes(snapshot)
        try:
            self._files.makedirs(self._folder, exist_ok=True)
            with self._files.open(partial, "wb") as stream:
                if "file" in self._protocols():
                    os.chmod(partial, 0o600)
                stream.write(data)
            self._files.mv(partial, name)
            for _, old in self._found()[self._keep :]:
                self._files.rm(old)
            self._sweep()
        except OSError as error:
            with suppress(OSError):
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

    def oldest_kept_at(self) -> int | None:
        """Log offset of the oldest snapshot: nothing below it is needed for a restore."""
        found = self._found()
        return found[-1][0] if found else None

    def newest_at(self) -> int | None:
        """Log offset of the newest snapshot."""
        found = self._found()
        return found[0][0] if found else None

    def read(self) -> Iterator[FoundSnapshot | StateError]:
        """Each snapshot from the newest on, or why it cannot be used."""
        for _, name in self._found():
            try:
                with self._files.open(name, "rb") as stream:
                    yield _from_bytes(stream.read(), name)
            except StateError as error:
                yield error
            except OSError as error:
                yield StateError(f"{name}: cannot be read ({error}); fix permissions or delete it")

    def _protocols(self) -> tuple[str, ...]:
        protocol = self._files.protocol
        return (protocol,) if isinstance(protocol, str) else tuple(protocol)

    def _found(self) -> list[tuple[int, str]]:
        try:
            names = self._files.ls(self._folder, detail=False)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StateError(f"{self._address}: cannot be listed ({error}); fix permissions") from error
        matches = [(_NAME.fullmatch(str(name).rsplit("/", 1)[-1]), str(name)) for name in names]
        return sorted(((int(match[1]), name) for match, name in matches if match), reverse=True)


def _to_bytes(snapshot: Snapshot) -> memoryview:
    stream = io.BytesIO()
    stream.write(bytes(_HEADER.size))
    stream.write(snapshot.ledger)
    snapshot.sieve(stream)
    sieve = stream.tell() - _HEADER.size - len(snapshot.ledger)
    stream.seek(0)
    stream.write(
        _HEADER.pack(
            _MAGIC, _VERSION, snapshot.scheme, snapshot.log_id, snapshot.decisions_id,
            snapshot.at, snapshot.decisions_from, len(snapshot.ledger), sieve,
        )
    )  # fmt: skip
    with stream.getbuffer() as content:
        digest = hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest()
    stream.seek(0, io.SEEK_END)
    stream.write(digest)
    return stream.getbuffer()


def _from_bytes(data: bytes, name: str) -> FoundSnapshot:
    content = memoryview(data)[:-_DIGEST_SIZE]
    if len(data) < _HEADER.size + _DIGEST_SIZE or data[:4] != _MAGIC:
        raise StateError(f"{name}: is no snapshot of an index; delete it, an older one or the log will do")
    magic_version = struct.unpack_from("<H", data, 4)[0]
    if magic_version != _VERSION:
        raise StateError(
            f"{name}: snapshot format {magic_version}, this program reads {_VERSION}; delete it or run the "
            "program that wrote it"
        )
    if hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest() != data[-_DIGEST_SIZE:]:
        raise StateError(
            f"{name}: checksum differs, it is damaged; delete it, an older one or the log will do"
        )
    _, _, scheme, log_id, decisions_id, at, decisions_from, ledger, sieve = _HEADER.unpack_from(content)
    split = _HEADER.size + ledger
    return FoundSnapshot(
        at, decisions_from, log_id, decisions_id, scheme,
        ledger_from_bytes(bytes(content[_HEADER.size : split]), name), bytes(content[split : split + sieve]),
    )  # fmt: skip
