"""Snapshots that cannot be written or used: one clear line, an older one or the log in its place."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO

import pytest

from pipeline.ports import Partition
from pipeline.sessions import Ledger
from pipeline.sessions_state import ledger_to_bytes
from pipeline.snapshots import FoundSnapshot, Snapshot, SnapshotStore
from stages.contract import Kind
from stages.errors import StateError
from stages.scheme import Scheme
from tests.service.test_changed_settings import COUNT, Deployment, base, deployment, posts
from tests.service.test_changed_settings import scheme as scheme


def snapshot(at: int) -> Snapshot:
    return Snapshot(at, 0, bytes(16), bytes(16), bytes(16), ledger_to_bytes(Ledger()), _write)


def _write(stream: BinaryIO) -> None:
    stream.write(b"sieve")


class _Full:
    """A file on a full disk: the first bytes fit, the rest does not."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 (closed by __exit__)

    def __enter__(self) -> _Full:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        self._file.write(data[:7])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_one_line_and_leaves_the_older_snapshot_and_nothing_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SnapshotStore(str(tmp_path), "t")
    store.write(snapshot(1))
    with monkeypatch.context() as patch:
        patch.setattr(store._files, "open", lambda path, mode: _Full(path))
        with pytest.raises(StateError, match=r"No space left on device.*free space") as refused:
            store.write(snapshot(2))
    assert "\n" not in str(refused.value)
    (kept,) = (tmp_path / "t").iterdir()
    assert kept.name == "index-0000000000000001.snapshot"
    store.write(snapshot(2))
    assert store.newest_at() == 2


def test_half_snapshots_of_killed_processes_are_swept(tmp_path: Path) -> None:
    store = SnapshotStore(str(tmp_path), "t")
    store.write(snapshot(1))
    left = tmp_path / "t" / "index-0000000000000002.snapshot.4711.partial"
    left.write_bytes(b"half")
    other = tmp_path / "t" / "notes.txt"
    other.write_text("not ours")
    store.write(snapshot(3))
    assert not left.exists()
    assert other.exists()


@pytest.mark.parametrize("cut", [0, 3, 50, -1])
def test_a_cut_snapshot_is_named_and_the_older_one_is_used(tmp_path: Path, cut: int) -> None:
    store = SnapshotStore(str(tmp_path), "t")
    store.write(snapshot(1))
    newest = Path(store.write(snapshot(2)))
    newest.write_bytes(newest.read_bytes()[:cut])
    damaged, older = store.read()
    assert isinstance(damaged, StateError)
    assert "index-0000000000000002.snapshot" in str(damaged)
    assert "delete" in str(damaged)
    assert isinstance(older, FoundSnapshot)
    assert (older.at, older.sieve) == (1, b"sieve")


def test_a_snapshot_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SnapshotStore(str(tmp_path), "t")
    store.write(snapshot(1))

    def refuse(path: str, mode: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(store._files, "open", refuse)
    (found,) = store.read()
    assert isinstance(found, StateError)
    assert "fix permissions" in str(found)


def test_a_snapshot_of_another_configuration_is_named_and_the_log_does(
    tmp_path: Path, scheme: Scheme
) -> None:
    settings = base(str(tmp_path / "state"))
    world: Deployment = deployment(settings, scheme)
    world.produce(posts(1, COUNT))
    assert world.run(settings, 300)
    assert list((tmp_path / "state" / "t").iterdir())
    exact = settings.exact.model_copy(
        update={"window": settings.exact.window.model_copy(update={"messages": 9_000})}
    )
    world.produce(posts(2, 5))
    assert world.run(settings.model_copy(update={"exact": exact}), 500)
    assert any("exact" in notice for notice in world.notices), world.notices
    kinds = world.judged()
    assert len(kinds) == COUNT + 5
    uniques = world.cluster.log(Partition("posts.unique", 0)).visible()
    assert len(list(uniques)) == sum(kind is Kind.UNIQUE for kind in kinds.values())
