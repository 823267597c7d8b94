"""Snapshots of the index: for a log offset, the ledger and the state of the sieve.

A snapshot is a manifest (`saved/manifest.py`) with the ledger and what is small of the sieve; it names the
files with the rest. The newest `keep` snapshots stay, and with them the files that they name. The name of a
snapshot identifies its log: snapshots of a deleted log are neither read nor counted, whatever their offsets
are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from twinsieve.pipeline.index.ledger import Ledger, ledger_from_bytes
from twinsieve.pipeline.saved import UnreadableError, Watch, no_watch
from twinsieve.pipeline.saved.manifest import ManifestReader, StateFile, write_manifest
from twinsieve.pipeline.saved.signing import RefusedError
from twinsieve.pipeline.saved.storage import PARTIAL, Storage, advice_on
from twinsieve.pipeline.wire.chain import LINK_SIZE, UNKNOWN
from twinsieve.stages.errors import StateError
from twinsieve.stages.formats import SNAPSHOT, VersionError

NUMBERING_SIZE = 16
_SIZES = {
    "log_id": {16},
    "decisions_id": {16},
    "scheme": {16},
    "link": {0, LINK_SIZE},
    "numbering": {NUMBERING_SIZE},
}
"""Fields of a snapshot that are bytes, hexadecimal in the manifest: their possible sizes."""
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
    """Reads a snapshot, which is undamaged.

    stamp: which state it holds
    files: the files with the rest of the sieve; storage: the folder that they are in
    numbering, fixed: as in `Snapshot`
    stream: the whole snapshot; it must stay open while the snapshot is read
    name: names the snapshot in errors
    raises: StateError if it cannot be used (`ManifestReader`)
    """

    def __init__(self, stream: BinaryIO, name: str, storage: Storage) -> None:
        self.name = name
        self.storage = storage
        self._manifest = ManifestReader(stream, SNAPSHOT, name, storage)
        self.files = self._manifest.files
        try:
            about = self._manifest.about
            numbers = [about.pop(part) for part in ("next_offset", "decisions_from", "ledger")]
            self.fixed = about.pop("fixed")
            read = {part: bytes.fromhex(about[part]) for part in _SIZES}
            wrong = [part for part, sizes in _SIZES.items() if len(read[part]) not in sizes]
            if {type(number) for number in numbers} != {int} or min(numbers) < 0 or max(numbers) >= 1 << 63:
                raise ValueError(f"it has the numbers {numbers}")
            if wrong or type(self.fixed) is not str:
                raise ValueError(f"other sizes: {wrong}")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._manifest.damaged(error) from error
        self.numbering = read.pop("numbering")
        next_offset, decisions_from, self._ledger_size = numbers
        self.stamp = Stamp(next_offset, decisions_from, **read)

    def sieve(self) -> BinaryIO:
        """A stream of the sieve's bytes; each call begins at their beginning."""
        return self._manifest.body(self._ledger_size)

    def ledger(self) -> Ledger:
        """The ledger. raises: UnreadableError"""
        try:
            return ledger_from_bytes(self._manifest.body(0, self._ledger_size).read(), self.name)
        except StateError as error:
            raise UnreadableError(str(error)) from error


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
    own: next offsets of snapshots that are known to be of this log's history: the others are not deleted,
        because a copy of the cluster, with the ids of its topics, may use the same folder
    """

    def __init__(self, storage: Storage, keep: int) -> None:
        self.storage = storage
        self.foreign: dict[int, str] = {}
        self.own: set[int] = set()
        self._keep = keep

    def write(self, snapshot: Snapshot, watch: Watch = no_watch, links: Collection[bytes] = ()) -> Stored:
        """Store a snapshot and delete the oldest ones beyond `keep`; returns its name and size.

        links: those of the snapshot's own history, as far as they are known
        raises: StateError if it cannot be written (no permission, disk full), or if another process
            has deleted a file that it names; the older snapshots stay
        """
        storage = self.storage
        name = f"index-{snapshot.next_offset:016d}-{_short(snapshot.log_id)}.snapshot"
        try:
            if name in storage.names() and not self._is_own(snapshot.next_offset, name, links):
                raise StateError(
                    f"{name} is of another history of this log, perhaps of a copy of the cluster; move it "
                    "away, or give one of the two another state.dir"
                )
            file = storage.create(name)
            try:
                size = _write(snapshot, file.stream, storage, watch)
                file.finish()
                there = set(storage.names())
                if any(part.name not in there for part in snapshot.files):
                    storage.remove(name)
                    raise StateError("another process has deleted some of its files")
                self.own.add(snapshot.next_offset)
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
            self._delete_old(snapshot.log_id, snapshot.next_offset, links)
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            undeleted = error
        return Stored(storage.path(name), size, undeleted)

    def _delete_old(self, log_id: bytes, newest: int, links: Collection[bytes]) -> None:
        """Delete the snapshots of this history beyond `keep` up to the log offset `newest`, and what killed
        processes left.

        Names of later ones push none out: a stranger could have given them. raises: errors of the store
        """
        listed = [(offset, name) for offset, name in self._listed(log_id) if offset <= newest]
        ours = [(offset, name) for offset, name in listed if self._is_own(offset, name, links)]
        self.own.intersection_update(offset for offset, _ in self._listed(log_id))
        for _, old in ours[self._keep :]:
            self.storage.remove(old)
        for partial in self.storage.names():
            if partial.startswith("index-") and partial.endswith(PARTIAL):
                self.storage.sweep(partial)

    def _is_own(self, offset: int, name: str, links: Collection[bytes]) -> bool:
        """Whether a snapshot is of the history with these links, or cannot be read by anybody."""
        if offset in self.own or offset in self.foreign:
            return offset in self.own
        with ExitStack() as stack:
            found = self._opened(name, stack)
            is_own = found.stamp.link in links if isinstance(found, SnapshotReader) else found.lasting
        if is_own:
            self.own.add(offset)
        return is_own

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
            reader = SnapshotReader(stack.enter_context(self.storage.open(name)), shown, self.storage)
        except UnreadableError as error:
            return error
        except VersionError as error:
            return (_NewerError if error.is_newer else UnreadableError)(str(error))
        except StateError as error:
            return UnreadableError(str(error))
        except Exception as error:  # noqa: BLE001 (as in `write`)
            advice = advice_on(error, "fix permissions")
            kind = self.storage.kind_of(error)
            return UnreadableError(f"{shown}: cannot be read ({kind}); {advice} or delete it", lasting=False)
        match = _NAME.fullmatch(name)
        if match is None or int(match[1]) != reader.stamp.next_offset:
            return UnreadableError(
                f"{shown}: holds the state at block {reader.stamp.next_offset}, so it has the name of "
                "another snapshot; restore the right file or delete it"
            )
        return reader

    def _listed(self, log_id: bytes) -> list[tuple[int, str]]:
        matches = [(_NAME.fullmatch(name), name) for name in self.storage.names()]
        ours = _short(log_id)
        listed = [(int(match[1]), name) for match, name in matches if match and match[2] == ours]
        return sorted((each for each in listed if each[0] not in self.foreign), reverse=True)


def _short(log_id: bytes) -> str:
    return hashlib.blake2b(log_id, digest_size=4).hexdigest()


def _write(snapshot: Snapshot, stream: BinaryIO, storage: Storage, watch: Watch) -> int:
    """Write a snapshot; returns its size in bytes."""
    about = {part: getattr(snapshot, part).hex() for part in _SIZES} | {
        "next_offset": snapshot.next_offset,
        "decisions_from": snapshot.decisions_from,
        "fixed": snapshot.fixed,
        "ledger": len(snapshot.ledger),
    }

    def write_body(body: BinaryIO) -> None:
        body.write(snapshot.ledger)
        snapshot.sieve(body)

    return write_manifest(stream, SNAPSHOT, about, snapshot.files, write_body, storage, watch)
