"""Snapshots of a running index: frozen in a moment, written in the background, one at a time."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import dataclass

from pipeline.index_state import IndexState
from pipeline.sessions_state import ledger_to_bytes
from pipeline.snapshots import Snapshot, SnapshotStore
from stages.errors import StateError


@dataclass(frozen=True, slots=True)
class Written:
    """A snapshot that is stored; nothing of the log below `oldest_at` is needed for a restore."""

    oldest_at: int | None


class SnapshotWriter:
    """Writes what an index had when it was asked to.

    background: runs one write at a time beside the index
    """

    def __init__(
        self, store: SnapshotStore, ids: tuple[bytes, bytes], scheme: bytes, background: Executor
    ) -> None:
        self._store = store
        self._ids = ids
        self._scheme = scheme
        self._background = background
        self._running: Future[Written] | None = None

    @property
    def busy(self) -> bool:
        """Whether a snapshot is being written, or was and nobody has asked what became of it."""
        return self._running is not None

    def begin(self, state: IndexState, decisions_from: int) -> None:
        """Freeze the state, which must be committed, and begin to write it; not while `busy`."""
        ledger = ledger_to_bytes(state.ledger)
        sieve = state.sieve.freeze()
        snapshot = Snapshot(state.at, decisions_from, *self._ids, self._scheme, ledger, sieve)
        self._running = self._background.submit(self._write, snapshot)

    def _write(self, snapshot: Snapshot) -> Written:
        self._store.write(snapshot)
        return Written(self._store.oldest_kept_at())

    def finished(self, *, wait: bool = False) -> Written | StateError | None:
        """What became of the one that was begun, told once; None while it is being written."""
        running = self._running
        if running is None or not (wait or running.done()):
            return None
        self._running = None
        try:
            return running.result()
        except StateError as error:
            return error
