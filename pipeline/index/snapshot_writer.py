"""Writes snapshots of a running index in the background, one at a time; restores an index from a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO, NamedTuple, TypeVar, cast

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.index.history import History, Unconfirmed
from twinsieve.pipeline.index.ledger import Ledger, ledger_to_bytes
from twinsieve.pipeline.index.snapshot_store import Snapshot, SnapshotReader, SnapshotStore
from twinsieve.pipeline.index.state import IndexState, Judge, numbering_of
from twinsieve.pipeline.saved import Moved, UnreadableError, Watch, no_watch
from twinsieve.pipeline.saved.journal import Cut, Journal
from twinsieve.pipeline.saved.manifest import Holds, StateFile
from twinsieve.pipeline.saved.saved_files import SavedFiles
from twinsieve.pipeline.saved.storage import Storage, advice_on
from twinsieve.pipeline.settings.fixed import decode_fixed, differing
from twinsieve.pipeline.wire.chain import UNKNOWN
from twinsieve.pipeline.wire.positions import first_beyond
from twinsieve.stages.errors import DamagedError, StateError
from twinsieve.stages.judge.frozen import SavedParts
from twinsieve.stages.window.segments import IntoFile

_T = TypeVar("_T")
_SETTLE_S = 3.0
"""Time without a snapshot after an index has begun to judge, so that it first judges the waiting blocks."""

_AGAIN_S = 30.0
"""Seconds from a failed write to the next attempt."""

_LOOK_EVERY_S = 1.0
"""While the end of a write is awaited, look this often whether the store hangs."""

_RELISTED = 3
"""How often a restore lists the snapshots, if there are others at each time."""

_REPORT_EVERY_S = 600.0
"""Seconds between two notices that snapshots fail; the counter counts every failure."""


class SnapshotResult(NamedTuple):
    """Result of storing a snapshot.

    oldest_offset: a restore needs no block below this log offset
    decisions_from: a restore needs no decision below this offset; None if that is unknown, because another
        process wrote the oldest snapshot
    log_line: a line for the log that says what was stored
    seconds: from its begin until it was stored; size: bytes written
    files: how many it names; stored_bytes: bytes of these and of itself
    undeleted: a line that says why files of older snapshots could not be deleted, or None
    """

    oldest_offset: int | None
    decisions_from: int | None
    log_line: str
    seconds: float
    size: int
    files: int
    stored_bytes: int
    undeleted: str | None


class SnapshotWriter:
    """Writes snapshots of an index in the background; without a store it writes none.

    store, journal: the snapshots, and the files of the sieve that they name; both or none
    background: executes one write at a time while the index continues
    every_s: the next snapshot is due when the oldest block that a restore would have to replay is this old
    watch: called for written bytes, but only while the caller waits for the end of a write
    fixed: as in `Snapshot`; newest: of the snapshot that was restored
    announces: a snapshot is also due when the file of a segment is done, so that shards learn of it
    stored_ms: when the last snapshot was stored, None before the first
    failures: number of failed writes; bytes_written: bytes of stored snapshots and of all their files. The
        caller adds both to its counters and sets them to 0
    """

    def __init__(
        self,
        store: SnapshotStore | None,
        journal: Journal | None,
        ids: tuple[bytes, bytes],
        scheme: bytes,
        background: Executor,
        clock: Clock,
        every_s: float,
        watch: Watch = no_watch,
        fixed: str = "",
        newest: tuple[int, int] = (0, 0),
        *,
        announces: bool = False,
    ) -> None:
        self._store = store
        self._journal = journal
        self._ids = ids
        self._scheme = scheme
        self._fixed = fixed
        self._background = background
        self._clock = clock
        self._every_s = every_s
        self._announces = announces
        self._watch = watch
        self._is_awaited = False
        self._looking: Future[Collection[str]] | None = None
        """A look at the folder, for the next snapshot: since the last one was written, or this index is
        live, no other index deletes files."""
        self._live_s = clock.monotonic_s()
        self._unfrozen_s: float | None = None
        """For the blocks that are in no snapshot, not even in one being written: when the oldest of them was
        judged or had arrived. None if there is no such block."""
        self._unstored_s: float | None = None
        """The same for the blocks that are only in the snapshot being written; None if no write is
        running."""
        self._began_s = 0.0
        self._failed_s: float | None = None
        """When the last write failed; None when it did not."""
        self._failing = 0
        self._reported_s = self._undeleted_reported_s = 0.0
        self._running: Future[SnapshotResult] | None = None
        self._written: dict[int, int] = {}
        self.newest = newest
        """(next offset, offset of the next decision) in the last stored snapshot; that of an empty state is
        zeros."""
        self._counted = 0
        """Bytes of the journal that are in the log line of a snapshot already."""
        self.pause_s = 0.0
        """Seconds for which judging stopped at the last snapshot."""
        self.took_s: float | None = None
        """Seconds from the begin of the last stored snapshot until it was stored; None before the first."""
        self.files = 0
        """Number of files that it names."""
        self.stored_bytes = 0
        """Bytes of these files and of itself."""
        self._counted_failures = 0
        self.bytes_written = 0
        self.stored_ms: int | None = None
        self.failures = 0

    @property
    def since_s(self) -> float | None:
        """For the blocks that a restore from the last stored snapshot would have to replay: when the oldest
        of them was judged or had arrived. None if there is no such block."""
        return self._unstored_s if self._unstored_s is not None else self._unfrozen_s

    def is_due(self) -> bool:
        """Whether to begin a snapshot now: it is time, and the background has looked at the folder. False
        until the result of the last write is collected. A folder that hangs keeps the background."""
        if self._looking is None:
            self._look()
        has_looked = self._looking is not None and self._looking.done()
        return has_looked and self._is_time

    def _look(self, others: Callable[[], Sequence[StateFile]] | None = None) -> None:
        """Let the background look at the folder, so that the thread that judges need not. others: as for
        `look_at`"""
        if self._store is not None and self._journal is not None:
            self._looking = self._background.submit(look_at, self._journal, others)

    @property
    def _is_time(self) -> bool:
        now_s, since_s = self._clock.monotonic_s(), self.since_s
        if self._running is not None or since_s is None:
            return False
        if self._failed_s is not None:
            return now_s - self._failed_s >= min(_AGAIN_S, self._every_s)
        is_time = now_s - since_s >= self._every_s or (self._announces and self._has_segment)
        return is_time and now_s - self._live_s >= min(_SETTLE_S, self._every_s)

    @property
    def _has_segment(self) -> bool:
        """Whether the file of a segment is done that no snapshot names."""
        return self._journal is not None and self._journal.has_unnamed_segment

    @property
    def waiting_segments(self) -> int:
        """Number of sealed segments that are being written to files, or wait for that."""
        return 0 if self._journal is None else len(self._journal.segments.being_written)

    def take_segment_failures(self) -> int:
        """Number of files of segments that could not be written, since the last call."""
        if self._journal is None:
            return 0
        before, self._counted_failures = self._counted_failures, self._journal.segments.failures
        return self._counted_failures - before

    def live(self, state: IndexState, followed_since_ms: int | None) -> None:
        """Note that the index judges from now on, in this state. Begin to write to the store those of its
        segments that the newest snapshot does not name; if the store fails, the next snapshot begins it.

        The time to the next snapshot counts from the arrival of the oldest replayed block, not from now;
        otherwise an index that restarts more often than `every_s` would never write a snapshot.

        followed_since_ms: arrival time of the oldest replayed block, None if there was none
        """
        self._live_s = self._clock.monotonic_s()
        if self._running is None and self._store is not None:
            own = state.numbering, tuple(state.links)
            self._look(partial(_shared_files, self._store, self._ids[0], *own))
        if followed_since_ms is not None:
            age_s = max(0.0, (self._clock.now_ms() - followed_since_ms) / 1000)
            self._is_behind(self._live_s - age_s)

    def judged(self) -> None:
        """Note that blocks were judged and recorded, which are in no snapshot yet."""
        self._is_behind(self._clock.monotonic_s())

    def _is_behind(self, since_s: float | None) -> None:
        """Note that a block of this time is in no snapshot; the oldest such time is kept."""
        times_s = [at_s for at_s in (since_s, self._unfrozen_s) if at_s is not None]
        self._unfrozen_s = min(times_s, default=None)

    def begin(self, state: IndexState, decisions_from: int) -> None:
        """Freeze the state and begin to write it. The state must be committed, and no write may be running.

        Unless `is_due`, it waits for the folder, but not for one that hangs.
        """
        if self._store is None or self._journal is None:
            return
        if self._looking is None:
            self._look()
        self._began_s = self._clock.monotonic_s()
        self._unstored_s, self._unfrozen_s = self._unfrozen_s, None
        try:
            self._is_awaited = True
            parts = self._result(cast("Future[Collection[str]]", self._looking))
            cut = self._journal.cut(state.sieve.freeze(parts))
        except StateError as error:
            self._running = Future()
            self._running.set_exception(error)
            return
        finally:
            self._is_awaited = False
            self.pause_s = self._clock.monotonic_s() - self._began_s
        snapshot = Snapshot(
            state.next_offset, decisions_from, *self._ids, self._scheme, state.link,
            ledger_to_bytes(state.ledger), cut.frozen.write, numbering=state.numbering, fixed=self._fixed,
        )  # fmt: skip
        own = tuple(state.links)
        self._running = self._background.submit(self._write, self._store, self._journal, snapshot, cut, own)

    def _result(self, running: Future[_T]) -> _T:
        """The result of a call in the background. raises: its error; StateError if the store hangs"""
        while True:
            try:
                return running.result(_LOOK_EVERY_S)
            except TimeoutError:
                if running.done():
                    raise
                hung = self._store.storage.calls.hung() if self._store is not None else None
                if hung is not None:
                    raise StateError(
                        f"{hung}, so no snapshot is written; a restart uses the older one", lasting=False
                    ) from None

    def finished(self, *, wait: bool = False) -> SnapshotResult | None:
        """The result of the last write, returned once; None while it is running, or if there is none. raises:
        StateError if the write failed"""
        running = self._running
        if running is None or not (wait or running.done()):
            return None
        self._is_awaited = wait
        try:
            result = self._result(running)
        except StateError:
            self._failed_s = self._clock.monotonic_s()
            self._failing += 1
            self.failures += 1
            self._is_behind(self._unstored_s)
            raise
        finally:
            self._running = self._unstored_s = None
            self._is_awaited = False
            self._look()
        if self._failing:
            result = result._replace(log_line=f"{result.log_line} failed_before={self._failing}")
        self._failed_s, self._failing = None, 0
        if result.undeleted is not None:
            now_s = self._clock.monotonic_s()
            if now_s < self._undeleted_reported_s:
                result = result._replace(undeleted=None)
            else:
                self._undeleted_reported_s = now_s + _REPORT_EVERY_S
        self.stored_ms = self._clock.now_ms()
        self.took_s, self.files, self.stored_bytes = result.seconds, result.files, result.stored_bytes
        self.bytes_written += result.size
        return result

    def notice_of(self, error: StateError) -> str | None:
        """Notice about a failed write; None if there was a notice within the last `_REPORT_EVERY_S`."""
        now_s = self._clock.monotonic_s()
        if self._failing > 1 and now_s < self._reported_s:
            return None
        self._reported_s = now_s + _REPORT_EVERY_S
        return str(error) if self._failing <= 1 else f"{error}; the last {self._failing} tries failed"

    def _write(
        self, store: SnapshotStore, journal: Journal, snapshot: Snapshot, cut: Cut, own: Collection[bytes]
    ) -> SnapshotResult:
        """Write a snapshot. own: links of the state's own history"""
        others = _shared_files(store, snapshot.log_id, snapshot.numbering, own)
        files = journal.write(cut, others, self._moved)
        stored = store.write(replace(snapshot, files=tuple(files)), self._moved, own)
        undeleted = stored.undeleted
        try:
            named = store.named_files()
            journal.announced(files, None if isinstance(named, UnreadableError) else named)
            if isinstance(named, UnreadableError) and named.lasting:
                undeleted = named
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            undeleted = error
        # Names of later ones count for nothing: the log behind this snapshot is needed whoever gave them.
        kept = [at for at in store.kept_offsets(snapshot.log_id) if at <= snapshot.next_offset]
        # A snapshot replaces an earlier one at the same log offset.
        self._written[snapshot.next_offset] = snapshot.decisions_from
        self._written = {offset: start for offset, start in self._written.items() if offset in kept}
        took_s = self._clock.monotonic_s() - self._began_s
        self.newest = snapshot.next_offset, snapshot.decisions_from
        size, self._counted = stored.size + journal.written - self._counted, journal.written
        log_line = (
            f"snapshot stored at block {snapshot.next_offset} bytes={size} files={len(files)} "
            f"seconds={took_s:.1f} pause_ms={1000 * self.pause_s:.1f}"
        )
        oldest = kept[-1] if kept else None
        decisions_from = self._written.get(kept[-1]) if kept else None
        stored_bytes = stored.size + sum(file.size for file in files)
        left = None if undeleted is None else _left_over(store.storage, undeleted)
        return SnapshotResult(oldest, decisions_from, log_line, took_s, size, len(files), stored_bytes, left)

    def _moved(self, moved: Moved) -> None:
        if self._is_awaited:
            self._watch(moved)


def _shared_files(
    store: SnapshotStore, log_id: bytes, numbering: bytes, own: Collection[bytes]
) -> Sequence[StateFile]:
    """The files of the newest snapshot, if a state of this numbering and history can use them. own: links of
    that history"""
    newest_numbering, link, files = store.newest(log_id)
    # The numbering of a history that the cluster has lost may be the same.
    is_shared = newest_numbering == numbering and link != UNKNOWN and link in own
    return files if is_shared else ()


def look_at(journal: Journal, others: Callable[[], Sequence[StateFile]] | None = None) -> Collection[str]:
    """Names of the parts that are in the folder. raises: StateError

    others: the files for `Journal.publish`; None: do not publish
    """
    if others is not None:
        journal.publish(others())
    return journal.parts


def _left_over(storage: Storage, error: Exception) -> str:
    if isinstance(error, UnreadableError):
        return f"{error}; until then no file of an older snapshot is deleted, and they go on to take space"
    return (
        f"{storage.address}: files of older snapshots cannot be deleted ({storage.kind_of(error)}) and go on "
        f"to take space; {advice_on(error, 'fix permissions, or what the store says')}"
    )


@dataclass(frozen=True, slots=True)
class Sieves:
    """Functions that make sieves.

    fresh: an empty sieve
    load: the sieve in a snapshot's stream and files (StateError if it does not fit the settings). The last
        argument begins to write a segment that becomes full meanwhile
    salvage: a sieve with those parts of a snapshot's sieve that fit the settings; it may be empty
    scheme_id: fingerprint scheme of the sieves; window: their near window in messages
    scratch: folder for segments that are mapped, if the store is not a local folder; None: that of the system
    most_bytes: bytes that a file may have unpacked; None: any number
    holds: the settings on which the content of the sieves' files depends, as text
    """

    fresh: Callable[[], Judge]
    load: Callable[[BinaryIO, SavedParts, IntoFile], Judge]
    salvage: Callable[[BinaryIO, SavedParts, IntoFile], Judge]
    scheme_id: str
    window: int
    scratch: str | None = None
    most_bytes: int | None = None
    holds: str = ""


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of `restore_point`.

    journal: the files that hold the sieve of the state; None without a store
    decisions_from: offset of the next decision
    """

    state: IndexState
    journal: Journal | None
    decisions_from: int = 0


def restore_point(
    store: SnapshotStore | None,
    ids: tuple[bytes, bytes],
    scheme: bytes,
    fixed: str,
    sieves: Sieves,
    log_begins: int,
    notices: list[str],
    open_journal: Callable[[], Journal] | None,
    history: History,
    watch: Watch = no_watch,
) -> Restored:
    """The state of the newest snapshot that can be used, or an empty one.

    A snapshot of another history is never used: not even its ledger, which would take new messages for
    judged ones. A snapshot under other settings is skipped as long as the log is complete, because the log
    can restore everything. If the beginning of the log was deleted, the snapshot's ledger is used all the
    same, and those parts of its sieve that fit, so that judged messages stay judged.
    scheme, fixed: fingerprint scheme of this process, and its settings (as in `JudgedUnder`)
    log_begins: offset of the first block that is left; notices: receives the reasons why snapshots cannot be
        used; watch: called while a snapshot is read
    open_journal: makes the journal of a sieve that has kept nothing; None without a store
    history: tells whether a snapshot belongs to the log
    raises: StateError if no snapshot can be read and the beginning of the log was deleted
    """
    if store is None or open_journal is None:
        return _empty(ids[0], sieves, None, log_begins, notices)
    unreadable = 0
    restored: Restored | None = None
    for snapshot in _snapshots(store, ids[0]):
        if restored is not None:
            if isinstance(snapshot, SnapshotReader):
                _look_at_older(snapshot, store, history, notices)
            continue
        try:
            if isinstance(snapshot, UnreadableError):
                raise snapshot
            objection = history.objection(snapshot.stamp)
            if objection:
                notices.append(_foreign(snapshot.name, objection))
                store.foreign[snapshot.stamp.next_offset] = notices[-1]
                continue
            store.own.add(snapshot.stamp.next_offset)
            with (
                SavedFiles(
                    snapshot.storage,
                    snapshot.files,
                    sieves.scheme_id,
                    watch,
                    sieves.scratch,
                    sieves.most_bytes,
                ) as files,
                ExitStack() as undo,
            ):
                journal = open_journal()
                undo.callback(journal.close)
                if snapshot.stamp.scheme != scheme:
                    raise StateError(_other_scheme(snapshot.fixed, fixed))
                restored = _restored(snapshot, files, journal, ids[1], sieves, log_begins, notices)
                undo.pop_all()
        except StateError as error:
            unreadable += isinstance(error, UnreadableError)
            notices.append(str(error))
    if restored is not None:
        return restored
    if unreadable and log_begins:
        raise StateError(
            f"{notices[-1]}; no snapshot can be used, and the log before block {log_begins} was deleted: "
            "restore a snapshot; or delete all snapshots and start the first process with `twinsieve run "
            "--without-snapshots` to continue with the rest of the log"
        )
    return _empty(ids[0], sieves, open_journal(), log_begins, notices)


def _empty(
    log_id: bytes, sieves: Sieves, journal: Journal | None, log_begins: int, notices: list[str]
) -> Restored:
    """The state without a snapshot."""
    if log_begins:
        notices.append(
            f"there is no snapshot, and the log before block {log_begins} was deleted: copies of messages in "
            "the deleted blocks are emitted again"
        )
    numbering = numbering_of(log_id, sieves.holds)
    return Restored(IndexState(sieves.fresh(), Ledger(), numbering=numbering), journal)


def _snapshots(store: SnapshotStore, log_id: bytes) -> Iterator[SnapshotReader | UnreadableError]:
    """The snapshots of a log, newest first. At the end, those that the process that judges has stored
    meanwhile: it may have deleted what the others name."""
    for _ in range(_RELISTED):
        offsets = store.kept_offsets(log_id)
        yield from store.read(log_id)
        if store.kept_offsets(log_id) == offsets:
            return


def _restored(
    snapshot: SnapshotReader,
    files: SavedFiles,
    journal: Journal,
    decisions_id: bytes,
    sieves: Sieves,
    log_begins: int,
    notices: list[str],
) -> Restored:
    """The state in a snapshot. raises: UnreadableError if the snapshot is damaged; StateError if it does not
    fit"""
    if snapshot.stamp.decisions_id != decisions_id:
        raise StateError("a snapshot is ignored: it belongs to another decisions topic")
    with files.blamed(snapshot.name):
        sieve, held = _sieve(snapshot, files, journal.write_segment, sieves, log_begins, notices)
    ledger = snapshot.ledger()
    least, greatest = sieve.positions()
    if least < 0 or greatest >= first_beyond(len(ledger.topics)):
        raise UnreadableError(
            f"{snapshot.name}: its files hold messages of a topic that it does not name; delete it if there "
            "is an older one or the whole log"
        )
    unsigned = snapshot.storage.signing.not_of_first_key(file.digest for file in snapshot.files)
    if unsigned:
        notices.append(
            f"{snapshot.name}: {unsigned} of its {len(snapshot.files)} files are not signed with the first "
            "key of state.key_file; leave the other lines in that file until this message is gone"
        )
    stamp, numbering = snapshot.stamp, snapshot.numbering
    if held is not snapshot.files:
        numbering = numbering_of(numbering, stamp.next_offset, sieves.holds)
    journal.resume(sieve.stats().kept, held)
    state = IndexState(sieve, ledger, stamp.next_offset, stamp.link, numbering)
    return Restored(state, journal, stamp.decisions_from)


def _look_at_older(
    snapshot: SnapshotReader, store: SnapshotStore, history: History, notices: list[str]
) -> None:
    """Note whether a snapshot, older than the restored one, is of the same history: only then is it deleted
    when there are newer ones."""
    try:
        objection = history.objection(snapshot.stamp)
    except BrokerError:
        return
    if not objection:
        store.own.add(snapshot.stamp.next_offset)
    elif isinstance(objection, Unconfirmed):
        notices.append(
            f"{snapshot.name}: this older snapshot stays, because nothing tells any more whose it is "
            f"({objection}); delete it, unless a copy of this cluster writes to the same folder"
        )
    else:
        notices.append(
            f"{snapshot.name}: this older snapshot stays, because it is of another history ({objection}); "
            "give a copy of this cluster another state.dir, or delete the file"
        )
        store.foreign[snapshot.stamp.next_offset] = notices[-1]


def _foreign(name: str, objection: str) -> str:
    return (
        f"{name}: this snapshot is not used, because the log does not confirm it ({objection}): the topics "
        "were restored to an earlier moment, or lost records, or retention is shorter than this process was "
        "away; an older snapshot or the log is used; delete this file, or move it away"
    )


def _other_scheme(was: str, now: str) -> str:
    """Why a snapshot of another fingerprint scheme is ignored. was, now: settings of both schemes, as JSON"""
    differ = f" ({printable(differing(decode_fixed(was), decode_fixed(now)))})" if was else ""
    return f"a snapshot is ignored: it was written with another fingerprint scheme{differ}"


def _sieve(
    snapshot: SnapshotReader,
    files: SavedFiles,
    write: IntoFile,
    sieves: Sieves,
    log_begins: int,
    notices: list[str],
) -> tuple[Judge, Sequence[StateFile]]:
    """The sieve in a snapshot, and the files that hold it: those of the snapshot, or some of them."""
    try:
        return sieves.load(snapshot.sieve(), files, write), snapshot.files
    except StateError as error:
        if isinstance(error, UnreadableError | DamagedError) or not log_begins:
            raise
        notices.append(
            f"{error}; only those parts of the snapshot are restored that fit the settings, because the log "
            f"before block {log_begins} was deleted"
        )
        with files.again() as again:
            sieve = sieves.salvage(snapshot.sieve(), again, write)
        near = [file for file in snapshot.files if file.holds is not Holds.PART]
        return sieve, tuple(near) if sieve.stats().kept else ()
