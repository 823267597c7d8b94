"""Snapshots of the index: for a log offset, the ledger and the state of the sieve.

A snapshot is a manifest: it holds the ledger and what is small of the sieve, and names the files with the
rest (`pipeline/pieces/`). The newest `keep` snapshots stay, and with them the files that they name. The name
of a snapshot identifies its log: snapshots of a deleted log are neither read nor counted, whatever their
offsets are.

A snapshot consists of a header, the settings of the scheme, the list of files, the ledger, the sieve, and a
checksum of all that. It is computed while the sieve is read, so damage is noticed only at the end. With a key
(`pieces/signing.py`) it is the signature of the snapshot, and compared before anything else is read.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from hmac import compare_digest
from typing import BinaryIO, NamedTuple, cast

from twinsieve.pipeline.index.ledger import Ledger, ledger_from_bytes
from twinsieve.pipeline.pieces import Moved, UnreadableError, Watch, no_watch
from twinsieve.pipeline.pieces.manifest import StateFile, decode_files, encode_files
from twinsieve.pipeline.pieces.signing import SEAL_BYTES, RefusedError, Sealer
from twinsieve.pipeline.pieces.storage import PARTIAL, Storage, advice_on
from twinsieve.pipeline.pieces.watched_stream import WatchedStream
from twinsieve.pipeline.wire.chain import LINK_SIZE, UNKNOWN
from twinsieve.stages.errors import StateError

_HEADERS = {
    4: struct.Struct("<4sH16s16s16s16sqqQQQ"),
    5: struct.Struct("<4sH16s16s16s16sqqQQQQ"),
    6: struct.Struct("<4sH16s16s16s16sqqQQQQ16s"),
}
"""By format version. Version 4 lacks the settings of the scheme, versions 4 and 5 lack the link."""
_MAGIC = b"TSVS"
_VERSION = max(_HEADERS)
"""Format version of a snapshot that is written; all versions in `_HEADERS` are read."""
NUMBERING_SIZE = 16
_CHUNK_BYTES = 1 << 20
_NAME = re.compile(r"index-([0-9]{16})-([0-9a-f]{8})\.snapshot")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Says which state a snapshot holds.

    next_offset: log offset of the next block
    decisions_from: offset in the decisions topic, at or before the last decision that the state contains; a
        restore needs no decision below it
    log_id, decisions_id: topic ids of the log and of the decisions; scheme: hash of the fingerprint scheme
    link: as in `IndexState`
    """

    next_offset: int
    decisions_from: int
    log_id: bytes
    decisions_id: bytes
    scheme: bytes
    link: bytes


@dataclass(frozen=True, slots=True)
class Snapshot(Stamp):
    """An index state to be written.

    ledger: result of `ledger_to_bytes`; sieve: function that writes what is small of the sieve to a stream
    files: the files with the rest of the sieve
    numbering: as in `IndexState`. A process may use the files of another if both have the same numbering and
        the link of this snapshot is in its own history
    fixed: settings of the fingerprint scheme, as JSON
    """

    ledger: bytes
    sieve: Callable[[BinaryIO], None]
    files: tuple[StateFile, ...] = ()
    numbering: bytes = bytes(NUMBERING_SIZE)
    fixed: str = ""


class _NewerError(UnreadableError):
    """A newer program wrote the snapshot, so this one cannot tell which files it names."""


class SnapshotReader:
    """Reads a snapshot. Read the sieve first; then `ledger` checks that the whole snapshot is undamaged.

    stamp: which state it holds; trust nothing that was read before `ledger` has returned
    files: the files with the rest of the sieve; storage: the folder that they are in
    numbering, fixed: as in `Snapshot`; `fixed` is empty in version 4
    stream: the whole snapshot; it must stay open while the snapshot is read
    name: names the snapshot in errors
    raises: UnreadableError if it cannot be a complete snapshot
    """

    def __init__(self, stream: BinaryIO, name: str, storage: Storage) -> None:
        self._stream = stream
        self.name = name
        self.storage = storage
        self._size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        self._sealer: Callable[[], Sealer] = storage.signing.sealer
        if storage.signing.keys:
            # Nothing of it is looked at before it is known who wrote it.
            size = max(0, self._size - SEAL_BYTES)
            stream.seek(size)
            end = stream.read(SEAL_BYTES)
            stream.seek(0)
            body = _Part(stream, size, name, storage.kind_of, storage.signing.sealer())
            chunks = iter(lambda: body.read(_CHUNK_BYTES), b"")
            self._sealer = storage.signing.sealer_of(chunks, end, name).copy
            stream.seek(0)
        start = stream.read(_HEADERS[_VERSION].size)
        if self._size < _HEADERS[4].size + SEAL_BYTES or start[:4] != _MAGIC:
            raise UnreadableError(
                f"{name}: is not a snapshot of an index; delete it if there is an older one or the whole log"
            )
        version = struct.unpack_from("<H", start, 4)[0]
        if version not in _HEADERS:
            raise (_NewerError if version > _VERSION else UnreadableError)(
                f"{name}: snapshot format {version}, this program reads {min(_HEADERS)} to {_VERSION}; "
                "delete it or run the program that wrote it"
            )
        header = _HEADERS[version]
        if self._size < header.size + SEAL_BYTES:
            raise self._damaged()
        _, _, scheme, log_id, decisions_id, self.numbering, next_offset, decisions_from, *rest = (
            header.unpack(start[: header.size])
        )
        link = bytes(rest.pop()) if version > 5 else bytes(LINK_SIZE)
        link = link if any(link) else UNKNOWN
        self.stamp = Stamp(next_offset, decisions_from, log_id, decisions_id, scheme, link)
        files_size, self._ledger_size, self._sieve_size, fixed_size = [*rest, 0][:4]
        if self._size != header.size + sum(rest) + SEAL_BYTES or min(next_offset, decisions_from) < 0:
            raise self._damaged()
        stream.seek(header.size)
        fixed, listed = stream.read(fixed_size), stream.read(files_size)
        self._head = start[: header.size] + fixed + listed
        try:
            self.fixed = fixed.decode()
            self.files = decode_files(listed)
            for file in self.files:
                storage.signing.hashes_of(file.digest, storage.shown(file.name))
        except UnreadableError:
            raise
        except (StateError, UnicodeDecodeError):
            raise self._damaged() from None
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
        end = self._part(SEAL_BYTES).read()
        if not compare_digest(rest.digest.digest(), end):
            raise self._damaged()
        try:
            return ledger_from_bytes(self._ledger, self.name)
        except StateError as error:
            raise UnreadableError(str(error)) from error

    def _part(self, size: int) -> _Part:
        return _Part(self._stream, size, self.name, self.storage.kind_of, self._sealer())

    def _begin(self) -> _Part:
        """Read the ledger, which comes before the sieve; returns a stream of the sieve."""
        self._stream.seek(len(self._head))
        head = self._part(self._ledger_size)
        self._ledger = b"".join(iter(lambda: head.read(_CHUNK_BYTES), b""))
        rest = self._part(self._sieve_size)
        rest.digest.update(self._head)
        rest.digest.update(self._ledger)
        self._rest = rest
        return rest

    def _damaged(self) -> UnreadableError:
        return UnreadableError(
            f"{self.name}: the snapshot is damaged, its checksum or size differs; "
            "delete it if there is an older one or the whole log"
        )


class Stored(NamedTuple):
    """A snapshot that was written: its name in the store, and its size in bytes.

    undeleted: why older snapshots could not be deleted, or None
    """

    name: str
    size: int
    undeleted: Exception | None


class SnapshotStore:
    """Snapshots of one app, newest first.

    storage: the app's folder; keep: how many snapshots are kept
    foreign: by next offset, snapshots that do not belong to this log, although they bear its id, each with a
        line for the operator. They are left where they are, and count for nothing else
    """

    def __init__(self, storage: Storage, keep: int) -> None:
        self.storage = storage
        self.foreign: dict[int, str] = {}
        self._keep = keep

    def write(self, snapshot: Snapshot, watch: Watch = no_watch) -> Stored:
        """Store a snapshot and delete the oldest ones beyond `keep`; returns its name and size.

        raises: StateError if it cannot be written (no permission, disk full), or if another process
            has deleted a file that it names; the older snapshots stay
        """
        storage = self.storage
        name = f"index-{snapshot.next_offset:016d}-{_short(snapshot.log_id)}.snapshot"
        try:
            file = storage.create(name)
            try:
                size = _write(snapshot, file.stream, storage.signing.sealer(), watch)
                file.finish()
                there = set(storage.names())
                if any(part.name not in there for part in snapshot.files):
                    storage.remove(name)
                    raise StateError("another process has deleted some of its files")
                self.foreign.pop(snapshot.next_offset, None)
            finally:
                file.discard_partial()
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            raise StateError(
                f"{storage.address}: snapshot cannot be written ({storage.kind_of(error)}); "
                f"{advice_on(error, 'free space or fix permissions')}; the index continues with its older "
                "snapshot"
            ) from None
        undeleted: Exception | None = None
        try:
            self._delete_old(snapshot.log_id, snapshot.next_offset)
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            undeleted = error
        return Stored(storage.path(name), size, undeleted)

    def _delete_old(self, log_id: bytes, newest: int) -> None:
        """Delete the snapshots beyond `keep` up to the log offset `newest`, and what killed processes left.

        Names of later ones push none out: a stranger could have given them. raises: errors of the store
        """
        ours = [name for offset, name in self._listed(log_id) if offset <= newest]
        for old in ours[self._keep :]:
            self.storage.remove(old)
        for partial in self.storage.names():
            if partial.startswith("index-") and partial.endswith(PARTIAL):
                self.storage.sweep(partial)

    def named_files(self) -> set[str] | UnreadableError:
        """The files that the snapshots of all logs name; an error if that is unknown, because the store does
        not answer, or a newer program or the owner of another key wrote one of them. One that is damaged and
        not signed, or of an older format, names none.

        raises: StateError if the folder cannot be listed
        """
        # Read them each time: another process may have written a snapshot again under the same name.
        named: set[str] = set()
        for name in self.storage.names():
            if not _NAME.fullmatch(name):
                continue
            with ExitStack() as stack:
                found = self._opened(name, stack)
            if isinstance(found, SnapshotReader):
                named.update(file.name for file in found.files)
            elif isinstance(found, _NewerError | RefusedError) or not found.lasting:
                return found
        return named

    def newest(self, log_id: bytes) -> tuple[bytes, bytes, list[StateFile]]:
        """Numbering, link and files of the newest snapshot of a log; empty if none is there or can be
        read."""
        newest = next(self.read(log_id), None)
        if not isinstance(newest, SnapshotReader):
            return b"", UNKNOWN, []
        return newest.numbering, newest.stamp.link, newest.files

    def kept_offsets(self, log_id: bytes) -> list[int]:
        """Log offsets of the snapshots of a log, newest first. A restore needs no block below the last of
        them."""
        return [offset for offset, _ in self._listed(log_id)]

    def read(self, log_id: bytes) -> Iterator[SnapshotReader | UnreadableError]:
        """A reader for each snapshot of a log, newest first, or the error why it cannot be used. A reader
        works until the next one is requested."""
        for _, name in self._listed(log_id):
            with ExitStack() as stack:
                yield self._opened(name, stack)

    def _opened(self, name: str, stack: ExitStack) -> SnapshotReader | UnreadableError:
        """A reader of the snapshot of this name, which `stack` closes, or the error why it cannot be used."""
        shown = self.storage.shown(name)
        try:
            stream = stack.enter_context(self.storage.open(name))
            reader = SnapshotReader(stream, shown, self.storage)
            match = _NAME.fullmatch(name)
            if match is None or int(match[1]) != reader.stamp.next_offset:
                return UnreadableError(
                    f"{shown}: holds the state at block {reader.stamp.next_offset}, so it has the name of "
                    "another snapshot; restore the right file or delete it"
                )
            return reader
        except UnreadableError as error:
            return error
        except Exception as error:  # noqa: BLE001 (as in `write`)
            return _unreadable(shown, self.storage.kind_of(error), error)

    def _listed(self, log_id: bytes) -> list[tuple[int, str]]:
        matches = [(_NAME.fullmatch(name), name) for name in self.storage.names()]
        ours = _short(log_id)
        listed = [(int(match[1]), name) for match, name in matches if match and match[2] == ours]
        return sorted((each for each in listed if each[0] not in self.foreign), reverse=True)


def _short(log_id: bytes) -> str:
    return hashlib.blake2b(log_id, digest_size=4).hexdigest()


def _unreadable(name: str, kind: str, error: Exception) -> UnreadableError:
    """The error for a snapshot that its store failed to read, with this error."""
    advice = advice_on(error, "fix permissions")
    return UnreadableError(f"{name}: cannot be read ({kind}); {advice} or delete it", lasting=False)


def _write(snapshot: Snapshot, stream: BinaryIO, sealer: Sealer, watch: Watch = no_watch) -> int:
    """Write a snapshot; returns its size in bytes. The sieve writes itself twice, the first time only to
    count its bytes, because the header comes before it and holds its length."""
    counted = WatchedStream(None, lambda _: watch(Moved("writing", 0, 0)))
    snapshot.sieve(cast("BinaryIO", counted))
    files, fixed = encode_files(snapshot.files), snapshot.fixed.encode()
    header = _HEADERS[_VERSION]
    size = header.size + len(fixed) + len(files) + len(snapshot.ledger) + counted.count + SEAL_BYTES
    hashed = WatchedStream(stream, lambda _: watch(Moved("writing", hashed.count, size)), sealer)
    hashed.write(
        header.pack(
            _MAGIC, _VERSION, snapshot.scheme, snapshot.log_id, snapshot.decisions_id, snapshot.numbering,
            snapshot.next_offset, snapshot.decisions_from, len(files), len(snapshot.ledger), counted.count,
            len(fixed), snapshot.link,
        )
    )  # fmt: skip
    hashed.write(fixed)
    hashed.write(files)
    hashed.write(snapshot.ledger)
    snapshot.sieve(cast("BinaryIO", hashed))
    stream.write(sealer.digest())
    return size


class _Part:
    """A stream of the next `left` bytes of another stream. It computes the digest of the bytes that were
    read, and raises UnreadableError for any error of a store. kind_of: text for such an error"""

    def __init__(
        self,
        stream: BinaryIO,
        left: int,
        name: str,
        kind_of: Callable[[Exception], str],
        digest: Sealer,
    ) -> None:
        self._stream = stream
        self._left = left
        self._name = name
        self._kind_of = kind_of
        self.digest = digest

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        try:
            data = self._stream.read(wanted)
        except Exception as error:  # noqa: BLE001 (as in `write`)
            raise _unreadable(self._name, self._kind_of(error), error) from None
        self._left -= len(data)
        self.digest.update(data)
        return data
