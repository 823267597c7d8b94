"""Writes snapshots of a running index in the background, one at a time; restores an index from a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import BinaryIO, NamedTuple

from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.index.ledger import Ledger, ledger_to_bytes
from twinsieve.pipeline.index.snapshot_store import Snapshot, SnapshotReader, SnapshotStore
from twinsieve.pipeline.index.state import IndexState, Judge
from twinsieve.pipeline.pieces import Moved, UnreadableError, Watch, no_watch
from twinsieve.pipeline.pieces.journal import Cut, Journal
from twinsieve.pipeline.pieces.manifest import Holds, StateFile
from twinsieve.pipeline.pieces.saved_files import SavedFiles
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.frozen import SavedParts

_SETTLE_S = 3.0
"""Time without a snapshot after an index has begun to judge, so that it first judges the waiting blocks."""

_AGAIN_S = 30.0
"""Seconds from a failed write to the next attempt."""

_REPORT_EVERY_S = 600.0
"""Seconds between two notices that snapshots fail; the counter counts every failure."""


class SnapshotResult(NamedTuple):
    """Result of storing a snapshot.

    oldest_offset: a restore needs no block below this log offset
    decisions_from: a restore needs no decision below this offset; None if that is unknown, because another
        process wrote the oldest snapshot
    log_line: a line for the log that says what was stored
    """

    oldest_offset: int | None
    decisions_from: int | None
    log_line: str


class SnapshotWriter:
    """Writes snapshots of an index in the background; without a store it writes none.

    store, journal: the snapshots, and the files of the sieve that they name; both or none
    background: executes one write at a time while the index continues
    every_s: the next snapshot is due when the oldest block that a restore would have to replay is this old
    watch: called for written bytes, but only while the caller waits for the end of a write
    stored_ms: when the last snapshot was stored, None before the first
    failures: number of failed writes; the caller adds it to its counter and sets it to 0
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
    ) -> None:
        self._store = store
        self._journal = journal
        self._ids = ids
        self._scheme = scheme
        self._background = background
        self._clock = clock
        self._every_s = every_s
        self._watch = watch
        self._is_awaited = False
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
        self._reported_s = 0.0
        self._running: Future[SnapshotResult] | None = None
        self._written: dict[int, int] = {}
        self._counted = 0
        """Bytes of the journal that are in the log line of a snapshot already."""
        self.pause_s = 0.0
        """Seconds for which judging stopped at the last snapshot."""
        self.stored_ms: int | None = None
        self.failures = 0

    @property
    def since_s(self) -> float | None:
        """For the blocks that a restore from the last stored snapshot would have to replay: when the oldest
        of them was judged or had arrived. None if there is no such block."""
        return self._unstored_s if self._unstored_s is not None else self._unfrozen_s

    @property
    def due(self) -> bool:
        """Whether it is time to begin a snapshot; False until the result of the last write is collected."""
        now_s, since_s = self._clock.monotonic_s(), self.since_s
        if self._store is None or self._running is not None or since_s is None:
            return False
        if self._failed_s is not None:
            return now_s - self._failed_s >= min(_AGAIN_S, self._every_s)
        return now_s - since_s >= self._every_s and now_s - self._live_s >= min(_SETTLE_S, self._every_s)

    def live(self, followed_since_ms: int | None) -> None:
        """Note that the index judges from now on.

        The time to the next snapshot counts from the arrival of the oldest replayed block, not from now;
        otherwise an index that restarts more often than `every_s` would never write a snapshot.

        followed_since_ms: arrival time of the oldest replayed block, None if there was none
        """
        self._live_s = self._clock.monotonic_s()
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
        """Freeze the state and begin to write it. The state must be committed, and no write may be
        running."""
        if self._store is None or self._journal is None:
            return
        self._began_s = self._clock.monotonic_s()
        self._unstored_s, self._unfrozen_s = self._unfrozen_s, None
        try:
            cut = self._journal.cut(state.sieve.freeze(), state.sieve.image)
        except StateError as error:
            self._running = Future()
            self._running.set_exception(error)
            return
        snapshot = Snapshot(
            state.next_offset, decisions_from, *self._ids, self._scheme, ledger_to_bytes(state.ledger),
            cut.frozen.write,
        )  # fmt: skip
        self.pause_s = self._clock.monotonic_s() - self._began_s
        self._running = self._background.submit(self._write, self._store, self._journal, snapshot, cut)

    def finished(self, *, wait: bool = False) -> SnapshotResult | None:
        """The result of the last write, returned once; None while it is running, or if there is none. raises:
        StateError if the write failed"""
        running = self._running
        if running is None or not (wait or running.done()):
            return None
        self._is_awaited = wait
        try:
            result = running.result()
        except StateError:
            self._failed_s = self._clock.monotonic_s()
            self._failing += 1
            self.failures += 1
            self._is_behind(self._unstored_s)
            raise
        finally:
            self._running = self._unstored_s = None
            self._is_awaited = False
        if self._failing:
            result = result._replace(log_line=f"{result.log_line} failed_before={self._failing}")
        self._failed_s, self._failing = None, 0
        self.stored_ms = self._clock.now_ms()
        return result

    def notice_of(self, error: StateError) -> str | None:
        """Notice about a failed write; None if there was a notice within the last `_REPORT_EVERY_S`."""
        now_s = self._clock.monotonic_s()
        if self._failing > 1 and now_s < self._reported_s:
            return None
        self._reported_s = now_s + _REPORT_EVERY_S
        return str(error) if self._failing <= 1 else f"{error}; the last {self._failing} tries failed"

    def _write(self, store: SnapshotStore, journal: Journal, snapshot: Snapshot, cut: Cut) -> SnapshotResult:
        files = journal.write(cut, store.newest_files(snapshot.log_id), self._moved)
        stored = store.write(replace(snapshot, files=tuple(files)), self._moved)
        # The snapshot is stored. What is in the way of deleting old files is in the way of the next one too.
        with suppress(Exception):
            journal.announced(files, store.named_files())
        kept = store.kept_offsets(snapshot.log_id)
        # A snapshot replaces an earlier one at the same log offset.
        self._written[snapshot.next_offset] = snapshot.decisions_from
        self._written = {offset: start for offset, start in self._written.items() if offset in kept}
        took_s = self._clock.monotonic_s() - self._began_s
        size, self._counted = stored.size + journal.written - self._counted, journal.written
        log_line = (
            f"snapshot stored at block {snapshot.next_offset} bytes={size} files={len(files)} "
            f"seconds={took_s:.1f} pause_ms={1000 * self.pause_s:.1f}"
        )
        oldest = kept[-1] if kept else None
        return SnapshotResult(oldest, self._written.get(kept[-1]) if kept else None, log_line)

    def _moved(self, moved: Moved) -> None:
        if self._is_awaited:
            self._watch(moved)


@dataclass(frozen=True, slots=True)
class Sieves:
    """Functions that make sieves.

    fresh: an empty sieve; load: the sieve in a snapshot's stream and files (StateError if it does not fit the
        settings)
    salvage: a sieve with those parts of a snapshot's sieve that fit the settings; it may be empty
    scheme_id: fingerprint scheme of the sieves; window: their near window in messages
    """

    fresh: Callable[[], Judge]
    load: Callable[[BinaryIO, SavedParts], Judge]
    salvage: Callable[[BinaryIO, SavedParts], Judge]
    scheme_id: str
    window: int


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of `restore_point`.

    decisions_from: offset of the next decision; files: the files that hold the sieve of the state
    """

    state: IndexState
    decisions_from: int = 0
    files: tuple[StateFile, ...] = ()


def restore_point(
    store: SnapshotStore | None,
    ids: tuple[bytes, bytes],
    scheme: bytes,
    sieves: Sieves,
    log_begins: int,
    notices: list[str],
    watch: Watch = no_watch,
) -> Restored:
    """The state of the newest snapshot that can be used, or an empty one.

    A snapshot under other settings is skipped as long as the log is complete, because the log can restore
    everything. If the beginning of the log was deleted, the snapshot's ledger is used all the same, and those
    parts of its sieve that fit, so that judged messages stay judged.
    log_begins: offset of the first block that is left; notices: receives the reasons why snapshots cannot be
        used; watch: called while a snapshot is read
    raises: StateError if no snapshot can be read and the beginning of the log was deleted
    """
    unreadable = 0
    for snapshot in store.read(ids[0]) if store is not None else ():
        try:
            if isinstance(snapshot, UnreadableError):
                raise snapshot
            with SavedFiles(snapshot.storage, snapshot.files, sieves.scheme_id, watch) as files:
                return _restored(snapshot, files, ids[1], scheme, sieves, log_begins, notices)
        except StateError as error:
            unreadable += isinstance(error, UnreadableError)
            notices.append(str(error))
    if unreadable and log_begins:
        raise StateError(
            f"{notices[-1]}; no snapshot can be used, and the log before block {log_begins} was deleted: "
            "restore a snapshot; or delete all snapshots and start the first process with `twinsieve run "
            "--without-snapshots` to continue with the rest of the log"
        )
    if log_begins:
        notices.append(
            f"there is no snapshot, and the log before block {log_begins} was deleted: copies of messages in "
            "the deleted blocks are emitted again"
        )
    return Restored(IndexState(sieves.fresh(), Ledger()))


def _restored(
    snapshot: SnapshotReader,
    files: SavedFiles,
    decisions_id: bytes,
    scheme: bytes,
    sieves: Sieves,
    log_begins: int,
    notices: list[str],
) -> Restored:
    """The state in a snapshot. raises: UnreadableError if the snapshot is damaged; StateError if it does not
    fit"""
    try:
        if snapshot.stamp.decisions_id != decisions_id:
            raise StateError("a snapshot is ignored: it belongs to another decisions topic")
        if snapshot.stamp.scheme != scheme:
            raise StateError("a snapshot is ignored: it was written with another fingerprint scheme")
        sieve, held = _sieve(snapshot, files, sieves, log_begins, notices)
    except UnreadableError:
        raise
    except Exception:
        # Damage may cause any error. If the snapshot is damaged, `ledger` raises UnreadableError instead.
        snapshot.ledger()
        raise
    state = IndexState(sieve, snapshot.ledger(), snapshot.stamp.next_offset)
    return Restored(state, snapshot.stamp.decisions_from, held)


def _sieve(
    snapshot: SnapshotReader, files: SavedFiles, sieves: Sieves, log_begins: int, notices: list[str]
) -> tuple[Judge, tuple[StateFile, ...]]:
    """The sieve in a snapshot, and the files that hold it."""
    try:
        return sieves.load(snapshot.sieve(), files), tuple(snapshot.files)
    except StateError as error:
        if isinstance(error, UnreadableError) or not log_begins:
            raise
        snapshot.ledger()
        notices.append(
            f"{error}; only those parts of the snapshot are restored that fit the settings, because the log "
            f"before block {log_begins} was deleted"
        )
        with files.again() as again:
            sieve = sieves.salvage(snapshot.sieve(), again)
        near = [file for file in snapshot.files if file.holds is not Holds.PART]
        return sieve, tuple(near) if sieve.stats().kept else ()
