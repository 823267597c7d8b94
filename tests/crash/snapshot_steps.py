"""The steps of a snapshot, and a process that is killed at one of them."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest

from tests.memory.broker import CrashError
from tests.saved.small_runs import small_runs
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.index.snapshot_store import SnapshotStore
from twinsieve.pipeline.saved import journal, piece_bytes
from twinsieve.pipeline.saved.journal import Journal
from twinsieve.pipeline.saved.segment_writer import SegmentWriter
from twinsieve.pipeline.saved.storage import NewFile, Storage


class SnapshotStep(StrEnum):
    """What has just been done when the process is killed."""

    RECORD = "a record is appended"
    PIECE = "a piece is closed, and no manifest names it"
    SEGMENT = "the file of a segment is written, and no manifest names it"
    PART = "a part of the exact stage is written"
    JOINED = "runs of keys are joined into one"
    MERGED = "a merged piece is written"
    MANIFEST = "the manifest is written, and the oldest one is not deleted yet"
    STORED = "the oldest manifest is deleted, and the files that it named are not"
    DELETED = "one of several files is deleted"
    HELD = "a standby holds a segment back"
    GIVEN = "it judges, and has written one of them to the store"
    PUBLISHED = "it has written all of them to the store, and no manifest names them"


TAKEOVER = (SnapshotStep.HELD, SnapshotStep.GIVEN, SnapshotStep.PUBLISHED)
"""Steps of a process that follows another one first."""


def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of some messages, pieces of some records, four pieces make one."""
    monkeypatch.setattr(journal, "RECORD_MESSAGES", 4)
    monkeypatch.setattr(piece_bytes, "SMALLEST_PIECE", 9)
    small_runs(monkeypatch)


class Killed:
    """Kills one process at the n-th time of a step: from then on it changes no file and reaches no step.

    It does not clean up. `step` None: counts the steps only.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: SnapshotStep | None, nth: int = 1) -> None:
        self._step = step
        self._nth = nth
        self._victim: Index | None = None
        self._storages: list[Storage] = []
        self._files: list[NewFile] = []
        self.is_dead = False
        self.counts: Counter[SnapshotStep] = Counter()
        self._patch(monkeypatch, Journal, "_write", lambda *_: SnapshotStep.RECORD)
        self._patch(monkeypatch, Journal, "_close_piece", _closed)
        self._patch(monkeypatch, SegmentWriter, "_written", lambda *_: SnapshotStep.SEGMENT)
        self._patch(monkeypatch, SegmentWriter, "_hold", lambda *_: SnapshotStep.HELD)
        for give in ("_give_name", "_upload"):
            self._patch(monkeypatch, SegmentWriter, give, _given)
        self._patch(monkeypatch, SegmentWriter, "_publish", lambda *_: SnapshotStep.PUBLISHED)
        self._patch(monkeypatch, Journal, "_write_sections", lambda *_: SnapshotStep.PART)
        self._patch(monkeypatch, Journal, "_join", lambda *_: SnapshotStep.JOINED)
        self._patch(monkeypatch, Journal, "_merge", lambda *_: SnapshotStep.MERGED)
        self._patch(monkeypatch, NewFile, "finish", _finished)
        self._patch(monkeypatch, SnapshotStore, "write", lambda *_: SnapshotStep.STORED)
        self._patch(monkeypatch, Storage, "remove", _removed)
        self._patch(monkeypatch, Storage, "create", lambda *_: None)
        self._patch(monkeypatch, Storage, "sweep", lambda *_: None)

    def watch(self, index: Index) -> None:
        """The process of this index is to be killed."""
        assert index._store is not None
        self._victim = index
        self._storages.append(index._store.storage)

    def _patch(
        self,
        monkeypatch: pytest.MonkeyPatch,
        owner: type,
        name: str,
        step_of: Callable[..., SnapshotStep | None],
    ) -> None:
        plain = getattr(owner, name)

        def called(*args: Any, **kwargs: Any) -> Any:
            storage = args[0] if owner is Storage else _storage_of(args[0])
            if storage not in self._storages:
                return plain(*args, **kwargs)
            self.check()
            result = plain(*args, **kwargs)
            if isinstance(result, NewFile):
                self._files.append(result)
            step = step_of(*args)
            if step is not None:
                self.counts[step] += 1
                self.is_dead |= step is self._step and self.counts[step] == self._nth
            self.check()
            return result

        monkeypatch.setattr(owner, name, called)

    def check(self, _step: str = "") -> None:
        """The hook of its roles: a dead process does nothing more."""
        if self.is_dead:
            raise CrashError("killed")

    def bury(self) -> None:
        """Wait until the threads of the dead process have met its death; its files lose their locks."""
        victim, self._victim = self._victim, None
        assert victim is not None
        let_go(victim)
        # Also of a file that only a frame of its error holds: when that is found is up to the interpreter.
        for file in self._files:
            file.release()


def let_go(index: Index) -> None:
    """The threads of a dead process end, and its files lose their locks."""
    journal = index._journal
    assert journal is not None
    journal._writer.shutdown()
    journal.segments.scratch._writer.shutdown()
    journal.segments.thread.shutdown()
    for file in journal._unannounced.values():
        file.release()
    if journal._open is not None:
        journal._open.file.release()
    if not journal._storage.is_mapped:
        journal.segments._drop_held(0)  # they have no name that another process could see
    journal.segments._held.clear()
    # The map of a file holds its lock too.
    index.state.sieve.near.segments.sealed.clear()  # type: ignore[attr-defined]
    # The error that ended its thread holds the map in a circle of error and frames.
    gc.collect()


def _storage_of(owner: Any) -> Storage:
    storage = owner.storage if isinstance(owner, SnapshotStore) else owner._storage
    assert isinstance(storage, Storage)
    return storage


def _closed(journal: Journal, *_: object) -> SnapshotStep | None:
    return SnapshotStep.PIECE if journal._unannounced else None


def _given(segments: SegmentWriter, *_: object) -> SnapshotStep | None:
    return None if segments.holds_back else SnapshotStep.GIVEN


def _finished(file: NewFile, *_: object) -> SnapshotStep | None:
    return SnapshotStep.MANIFEST if file.name.endswith(".snapshot") else None


def _removed(_: Storage, name: str) -> SnapshotStep | None:
    return SnapshotStep.DELETED if name.endswith((".piece", ".part", ".segment")) else None
