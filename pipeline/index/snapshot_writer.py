"""Snapshots of a running index: frozen in a moment, written in the background, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.index.ledger import Ledger, ledger_to_bytes
from twinsieve.pipeline.index.snapshot_store import FoundSnapshot, Snapshot, SnapshotStore
from twinsieve.pipeline.index.state import IndexState, Judge
from twinsieve.stages.errors import StateError

_SETTLE_S = 3.0
"""An index that begins to judge finds what has waited for it, and works that off before it makes a copy."""


class SnapshotResult(NamedTuple):
    """What storing a snapshot has changed: a restore needs no block below `oldest_at` and no decision below
    `decisions_from`, None where that is not known: another process wrote the oldest snapshot."""

    oldest_at: int | None
    decisions_from: int | None


class SnapshotWriter:
    """Writes frozen states of an index in the background; without a store it writes none.

    background: runs one write at a time beside the index
    every_s: when a snapshot is that old, the next is due
    """

    def __init__(
        self,
        store: SnapshotStore | None,
        ids: tuple[bytes, bytes],
        scheme: bytes,
        background: Executor,
        clock: Clock,
        every_s: float,
    ) -> None:
        self._store = store
        self._ids = ids
        self._scheme = scheme
        self._background = background
        self._clock = clock
        self._every_s = every_s
        self._taken_s = self._live_s = clock.monotonic_s()
        self._running: Future[SnapshotResult] | None = None
        self._written: dict[int, int] = {}

    @property
    def age_s(self) -> float:
        """Seconds of the log that a restore would have to follow."""
        return self._clock.monotonic_s() - self._taken_s

    @property
    def due(self) -> bool:
        """Whether it is time for the next, and the result of the last one was collected."""
        settled = self._clock.monotonic_s() - self._live_s >= min(_SETTLE_S, self._every_s)
        is_idle = self._store is not None and self._running is None
        return is_idle and settled and self.age_s >= self._every_s

    def live(self, followed_since_ms: int | None) -> None:
        """The index judges from now on.

        The age of its snapshot counts from the oldest replayed block, not from now; else an index that
        restarts more often than `every_s` would never write one.

        followed_since_ms: when the oldest block arrived that was followed, None if there was none
        """
        self._live_s = self._clock.monotonic_s()
        if followed_since_ms is not None:
            age_s = max(0.0, (self._clock.now_ms() - followed_since_ms) / 1000)
            self._taken_s = min(self._taken_s, self._live_s - age_s)

    def begin(self, state: IndexState, decisions_from: int) -> None:
        """Freeze the state, which must be committed, and begin to write it; not while a write is running."""
        if self._store is None:
            return
        self._taken_s = self._clock.monotonic_s()
        ledger = ledger_to_bytes(state.ledger)
        sieve = state.sieve.freeze()
        snapshot = Snapshot(state.at, decisions_from, *self._ids, self._scheme, ledger, sieve)
        self._running = self._background.submit(self._write, self._store, snapshot)

    def finished(self, *, wait: bool = False) -> SnapshotResult | None:
        """The result of the last write, given once; None while it is running. raises: StateError"""
        running = self._running
        if running is None or not (wait or running.done()):
            return None
        self._running = None
        return running.result()

    def _write(self, store: SnapshotStore, snapshot: Snapshot) -> SnapshotResult:
        store.write(snapshot)
        kept = store.kept_at(snapshot.log_id)
        # Of two snapshots at one log offset the later one stays.
        self._written[snapshot.at] = snapshot.decisions_from
        self._written = {at: start for at, start in self._written.items() if at in kept}
        return SnapshotResult(kept[-1], self._written.get(kept[-1])) if kept else SnapshotResult(None, None)


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
) -> tuple[IndexState, int]:
    """The state of the newest snapshot that can be used, or an empty one, and where its decisions go on.

    A snapshot under other settings is passed over while the log can bring everything back. Where the log
    was deleted, its ledger is used all the same, and what fits of its sieve: what was judged stays judged.
    log_begins: offset of the first block that is left; notices: gets why snapshots cannot be used
    raises: StateError when none can be read and the log does not go back to the beginning either
    """
    unreadable = 0
    for found in store.read(ids[0]) if store is not None else ():
        try:
            if isinstance(found, StateError):
                unreadable += 1
                raise found
            if found.decisions_id != ids[1]:
                raise StateError("snapshot belongs to another decisions topic; it is left alone")
            if found.scheme != scheme:
                raise StateError("snapshot is of another fingerprint scheme; it is left alone")
            return _state(found, sieves, log_begins, notices), found.decisions_from
        except StateError as error:
            notices.append(str(error))
    if unreadable and log_begins:
        raise StateError(
            f"{notices[-1]}; no snapshot can be used, and the log before block {log_begins} was deleted: "
            "bring a snapshot back, or delete them all to go on with what the log still holds"
        )
    if log_begins:
        notices.append(
            f"no snapshot, and the log before block {log_begins} was deleted: copies of what was judged "
            "there come out again"
        )
    return IndexState(sieves.fresh(), Ledger()), 0


def _state(found: FoundSnapshot, sieves: Sieves, log_begins: int, notices: list[str]) -> IndexState:
    try:
        sieve = sieves.load(found.sieve())
    except StateError as error:
        if not log_begins:
            raise
        sieve = sieves.salvage(found.sieve())
        notices.append(
            f"{error}; as the log before block {log_begins} was deleted, what fits of the snapshot is used"
        )
    return IndexState(sieve, found.ledger, found.at)
