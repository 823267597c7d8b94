"""Snapshots of a running index: frozen in a moment, written in the background, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.index.ledger import Ledger, ledger_to_bytes
from twinsieve.pipeline.index.snapshot_store import (
    Moved,
    Snapshot,
    SnapshotReader,
    SnapshotStore,
    UnreadableError,
    Watch,
    no_watch,
)
from twinsieve.pipeline.index.state import IndexState, Judge
from twinsieve.stages.errors import StateError

_SETTLE_S = 3.0
"""An index that begins to judge first processes the blocks that waited for it, then makes a copy."""

_AGAIN_S = 30.0
"""After a failure the next attempt begins after this time."""

_REPORT_EVERY_S = 600.0
"""Seconds between two notices that snapshots fail; the counter counts every failure."""


class SnapshotResult(NamedTuple):
    """What storing a snapshot has changed: a restore needs no block below `oldest_offset` and no decision
    below `decisions_from`, None where that is not known: another process wrote the oldest snapshot.

    log_line: what was stored, for the log
    """

    oldest_offset: int | None
    decisions_from: int | None
    log_line: str


class SnapshotWriter:
    """Writes frozen states of an index in the background; without a store it writes none.

    background: runs one write at a time beside the index
    every_s: when what a restore would have to replay is that old, the next snapshot is due
    watch: called for bytes that are written, only while somebody waits for the last of them
    stored_ms: when the last one was stored, None before the first
    failures: of writes; the caller counts them and sets this to 0
    """

    def __init__(
        self,
        store: SnapshotStore | None,
        ids: tuple[bytes, bytes],
        scheme: bytes,
        background: Executor,
        clock: Clock,
        every_s: float,
        watch: Watch = no_watch,
    ) -> None:
        self._store = store
        self._ids = ids
        self._scheme = scheme
        self._background = background
        self._clock = clock
        self._every_s = every_s
        self._watch = watch
        self._is_awaited = False
        self._live_s = clock.monotonic_s()
        self._unfrozen_s: float | None = None
        """When the oldest block was judged or replayed that no snapshot holds, not even one being written."""
        self._unstored_s: float | None = None
        """The same of the snapshot that is being written; None without one."""
        self._began_s = 0.0
        self._failed_s: float | None = None
        """When the last write failed; None when it did not."""
        self._failing = 0
        self._reported_s = 0.0
        self._running: Future[SnapshotResult] | None = None
        self._written: dict[int, int] = {}
        self.stored_ms: int | None = None
        self.failures = 0

    @property
    def since_s(self) -> float | None:
        """When the oldest block was judged, or had arrived, that a restore would follow behind the last
        stored snapshot; None where there is nothing to follow."""
        return self._unstored_s if self._unstored_s is not None else self._unfrozen_s

    @property
    def due(self) -> bool:
        """Whether it is time for the next, and the result of the last one was collected."""
        now_s, since_s = self._clock.monotonic_s(), self.since_s
        if self._store is None or self._running is not None or since_s is None:
            return False
        if self._failed_s is not None:
            return now_s - self._failed_s >= min(_AGAIN_S, self._every_s)
        return now_s - since_s >= self._every_s and now_s - self._live_s >= min(_SETTLE_S, self._every_s)

    def live(self, followed_since_ms: int | None) -> None:
        """The index judges from now on.

        The age of its snapshot counts from the oldest replayed block, not from now; else an index that
        restarts more often than `every_s` would never write one.

        followed_since_ms: when the oldest block arrived that was followed, None if there was none
        """
        self._live_s = self._clock.monotonic_s()
        if followed_since_ms is not None:
            age_s = max(0.0, (self._clock.now_ms() - followed_since_ms) / 1000)
            self._is_behind(self._live_s - age_s)

    def judged(self) -> None:
        """Blocks were judged and recorded that no snapshot holds."""
        self._is_behind(self._clock.monotonic_s())

    def _is_behind(self, since_s: float | None) -> None:
        """No snapshot holds a block of that time, nor of those that it has noted."""
        times_s = [at_s for at_s in (since_s, self._unfrozen_s) if at_s is not None]
        self._unfrozen_s = min(times_s, default=None)

    def begin(self, state: IndexState, decisions_from: int) -> None:
        """Freeze the state, which must be committed, and begin to write it; not while a write is running."""
        if self._store is None:
            return
        self._began_s = self._clock.monotonic_s()
        ledger = ledger_to_bytes(state.ledger)
        sieve = state.sieve.freeze()
        self._unstored_s, self._unfrozen_s = self._unfrozen_s, None
        snapshot = Snapshot(state.next_offset, decisions_from, *self._ids, self._scheme, ledger, sieve)
        self._running = self._background.submit(self._write, self._store, snapshot)

    def finished(self, *, wait: bool = False) -> SnapshotResult | None:
        """The result of the last write, given once; None while it is running. raises: StateError"""
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
        """Notice about a failed write; None if a similar notice was given a short while ago."""
        now_s = self._clock.monotonic_s()
        if self._failing > 1 and now_s < self._reported_s:
            return None
        self._reported_s = now_s + _REPORT_EVERY_S
        return str(error) if self._failing <= 1 else f"{error}; the last {self._failing} tries failed"

    def _write(self, store: SnapshotStore, snapshot: Snapshot) -> SnapshotResult:
        stored = store.write(snapshot, self._moved)
        kept = store.kept_offsets(snapshot.log_id)
        # Of two snapshots at one log offset the later one stays.
        self._written[snapshot.next_offset] = snapshot.decisions_from
        self._written = {offset: start for offset, start in self._written.items() if offset in kept}
        took_s = self._clock.monotonic_s() - self._began_s
        log_line = f"snapshot stored at block {snapshot.next_offset} bytes={stored.size} seconds={took_s:.1f}"
        oldest = kept[-1] if kept else None
        return SnapshotResult(oldest, self._written.get(kept[-1]) if kept else None, log_line)

    def _moved(self, moved: Moved) -> None:
        if self._is_awaited:
            self._watch(moved)


@dataclass(frozen=True, slots=True)
class Sieves:
    """How sieves are made.

    fresh: an empty one; load: the one on a snapshot's stream (StateError when it does not fit)
    salvage: as much of a snapshot's sieve as fits, if only an empty one
    """

    fresh: Callable[[], Judge]
    load: Callable[[BinaryIO], Judge]
    salvage: Callable[[BinaryIO], Judge]


def restore_point(
    store: SnapshotStore | None,
    ids: tuple[bytes, bytes],
    scheme: bytes,
    sieves: Sieves,
    log_begins: int,
    notices: list[str],
    watch: Watch = no_watch,
) -> tuple[IndexState, int]:
    """The state of the newest snapshot that can be used, or an empty one, and the offset of its next
    decision.

    A snapshot under other settings is passed over while the log can bring everything back. Where the log
    was deleted, its ledger is used all the same, and what fits of its sieve: what was judged stays judged.
    log_begins: offset of the first block that is left; notices: gets why snapshots cannot be used
    watch: called while a snapshot is read
    raises: StateError when none can be read and the log does not go back to the beginning either
    """
    unreadable = 0
    for snapshot in store.read(ids[0], watch) if store is not None else ():
        try:
            if isinstance(snapshot, UnreadableError):
                raise snapshot
            return _state(
                snapshot, ids[1], scheme, sieves, log_begins, notices
            ), snapshot.stamp.decisions_from
        except StateError as error:
            unreadable += isinstance(error, UnreadableError)
            notices.append(str(error))
    if unreadable and log_begins:
        raise StateError(
            f"{notices[-1]}; no snapshot can be used, and the log before block {log_begins} was deleted: "
            "bring a snapshot back, or delete them all to continue with what the log still holds, and "
            "start the first process with `twinsieve run --without-snapshots`"
        )
    if log_begins:
        notices.append(
            f"no snapshot, and the log before block {log_begins} was deleted: copies of what was judged "
            "there come out again"
        )
    return IndexState(sieves.fresh(), Ledger()), 0


def _state(
    snapshot: SnapshotReader,
    decisions_id: bytes,
    scheme: bytes,
    sieves: Sieves,
    log_begins: int,
    notices: list[str],
) -> IndexState:
    """The state of a snapshot that is whole. raises: UnreadableError where it is not; StateError"""
    try:
        if snapshot.stamp.decisions_id != decisions_id:
            raise StateError("snapshot belongs to another decisions topic; it is left alone")
        if snapshot.stamp.scheme != scheme:
            raise StateError("snapshot is of another fingerprint scheme; it is left alone")
        sieve = _sieve(snapshot, sieves, log_begins, notices)
    except UnreadableError:
        raise
    except Exception:
        # Damage may cause any error. If the snapshot is damaged, `ledger` raises the error that says so.
        snapshot.ledger()
        raise
    return IndexState(sieve, snapshot.ledger(), snapshot.stamp.next_offset)


def _sieve(snapshot: SnapshotReader, sieves: Sieves, log_begins: int, notices: list[str]) -> Judge:
    try:
        return sieves.load(snapshot.sieve())
    except StateError as error:
        if isinstance(error, UnreadableError) or not log_begins:
            raise
        snapshot.ledger()
        notices.append(
            f"{error}; as the log before block {log_begins} was deleted, what fits of the snapshot is used"
        )
        return sieves.salvage(snapshot.sieve())
