"""Snapshots of a running index: frozen in a moment, written in the background, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from pipeline.index_state import IndexState, Judge
from pipeline.sessions import Ledger
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


def restore_point(
    store: SnapshotStore | None,
    ids: tuple[bytes, bytes],
    scheme: bytes,
    fresh: Callable[[], Judge],
    load: Callable[[bytes], Judge],
    notices: list[str],
) -> tuple[IndexState, int]:
    """The state of the newest snapshot that can be used, or an empty one, and where its decisions go on.

    notices: gets why other snapshots cannot be used
    """
    for found in store.read() if store is not None else ():
        try:
            if isinstance(found, StateError):
                raise found
            if (found.log_id, found.decisions_id) != ids:
                raise StateError("snapshot belongs to other internal topics; it is left alone")
            if found.scheme != scheme:
                raise StateError("snapshot is of another fingerprint scheme; it is left alone")
            return IndexState(load(found.sieve), found.ledger, found.at), found.decisions_from
        except StateError as error:
            notices.append(str(error))
    return IndexState(fresh(), Ledger()), 0
