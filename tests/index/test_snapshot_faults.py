"""Snapshots that cannot be written or used: one clear line, an older one or the log in its place."""

from __future__ import annotations

import errno
import io
import os
import stat
import traceback
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import BinaryIO

import pytest

from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import COUNT, Deployment, base, deployment, exact_window, posts
from tests.stored import snapshots_at
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.ledger import Ledger, ledger_to_bytes
from twinsieve.pipeline.index.snapshot_store import Snapshot, SnapshotReader, SnapshotStore
from twinsieve.pipeline.saved import UnreadableError, storage
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.settings.checks import cross_check
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.named_files import file_system, store_error
from twinsieve.pipeline.wire.chain import UNKNOWN
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import StateError, UsageError
from twinsieve.stages.judge.scheme import Scheme

LOG_ID = bytes(16)


def snapshot(at: int, log_id: bytes = LOG_ID) -> Snapshot:
    return Snapshot(at, 0, log_id, bytes(16), bytes(16), UNKNOWN, ledger_to_bytes(Ledger()), _write)


def _write(stream: BinaryIO) -> None:
    stream.write(b"sieve")


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    """Keeps two snapshots in a folder `t`."""
    return snapshots_at(str(tmp_path), "t")


class _Full:
    """A file on a full disk: the first bytes fit, the rest does not."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 (closed by `close`)

    def close(self) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        self._file.write(data[:7])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_one_line_and_leaves_the_older_snapshot_whole(
    store: SnapshotStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(snapshot(1))
    with monkeypatch.context() as patch:
        patch.setattr(storage, "private_file", _Full)
        with pytest.raises(StateError, match=r"No space left on device.*free space") as refused:
            store.write(snapshot(2))
    assert "\n" not in str(refused.value)
    (kept,) = (tmp_path / "t").iterdir()
    assert kept.name.startswith("index-0000000000000001-")
    store.write(snapshot(2))
    assert store.kept_offsets(LOG_ID) == [2, 1]


def test_half_snapshots_of_killed_processes_are_swept(store: SnapshotStore, tmp_path: Path) -> None:
    store.write(snapshot(1))
    left = tmp_path / "t" / "index-0000000000000002-0badcafe.snapshot.4711.partial"
    left.write_bytes(b"half")
    other = tmp_path / "t" / "notes.txt"
    other.write_text("not ours")
    store.write(snapshot(3))
    assert not left.exists()
    assert other.exists()


@pytest.mark.parametrize("cut", [0, 3, 50, -1])
def test_a_cut_snapshot_is_named_and_the_older_one_is_used(store: SnapshotStore, cut: int) -> None:
    store.write(snapshot(1))
    newest = Path(store.write(snapshot(2)).name)
    newest.write_bytes(newest.read_bytes()[:cut])
    snapshots = store.read(LOG_ID)
    damaged, older = next(snapshots), next(snapshots)
    assert isinstance(damaged, UnreadableError)
    assert newest.name in str(damaged)
    assert "delete" in str(damaged)
    assert isinstance(older, SnapshotReader)
    assert (older.stamp.next_offset, older.sieve().read(), older.sieve().read(2)) == (1, b"sieve", b"si")


def _pieces(stream: BinaryIO, piece: bytes, count: int) -> None:
    for _ in range(count):
        stream.write(piece)


def test_a_snapshot_is_never_in_memory_as_a_whole(store: SnapshotStore) -> None:
    piece, count = Random(1).randbytes(1 << 20), 48
    tracemalloc.start()
    try:
        store.write(replace(snapshot(1), sieve=lambda stream: _pieces(stream, piece, count)))
        snapshots = store.read(LOG_ID)
        found = next(snapshots)
        assert isinstance(found, SnapshotReader)
        sieve = found.sieve()
        assert all(sieve.read(len(piece)) == piece for _ in range(count))
        assert not sieve.read()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_a_store_that_fails_while_a_sieve_is_read_is_named(store: SnapshotStore) -> None:
    store.write(snapshot(1))
    snapshots = store.read(LOG_ID)
    found = next(snapshots)
    assert isinstance(found, SnapshotReader)
    sieve = found.sieve()
    snapshots.close()  # type: ignore[attr-defined]
    with pytest.raises(StateError, match="cannot be read"):
        sieve.read()


def test_a_snapshot_that_may_not_be_read_is_named(
    store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(snapshot(1))

    def refuse(path: str, mode: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(store.storage._files, "open", refuse)
    (found,) = store.read(LOG_ID)
    assert isinstance(found, StateError)
    assert "fix permissions" in str(found)


def test_snapshots_of_a_log_that_was_deleted_are_not_in_the_way(store: SnapshotStore) -> None:
    for at in (70, 80, 90):
        store.write(snapshot(at, b"an older log...."))
    for at in (1, 2, 3):
        store.write(snapshot(at))
    assert store.kept_offsets(LOG_ID) == [3, 2]
    assert [found.stamp.next_offset for found in store.read(LOG_ID) if isinstance(found, SnapshotReader)] == [
        3,
        2,
    ]
    assert store.kept_offsets(b"an older log....")[0] == 90


@pytest.mark.parametrize("doing", ["ls", "open"])
def test_whatever_a_store_raises_is_one_line_without_its_words(
    doing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may repeat the address, or a key."""
    files, folder = file_system(f"memory://me:s3cret@bucket/{doing}")
    store = SnapshotStore(Storage((files, f"{folder}/t"), store_error), 2)
    store.write(snapshot(1))

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("s3cret has expired")

    with monkeypatch.context() as patch:
        patch.setattr(files, doing, refuse)
        with pytest.raises(StateError, match=r"cannot be (written|listed) .*RuntimeError") as refused:
            store.write(snapshot(2))
    assert "s3cret" not in "".join(traceback.format_exception(refused.value))
    monkeypatch.setattr(files, "open", refuse)
    told = list(map(str, store.read(LOG_ID)))
    assert told
    assert all("RuntimeError" in one and "s3cret" not in one for one in told)


@pytest.fixture
def open_umask() -> Iterator[None]:
    """What is made is for everybody, unless whoever makes it says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_snapshot_is_for_its_owner_alone_from_its_first_byte_on(tmp_path: Path, open_umask: None) -> None:
    place = tmp_path / "a" / "b"
    seen: set[tuple[bool, int]] = set()

    def look(stream: BinaryIO) -> None:
        stream.write(b"sieve")
        for path in ((tmp_path / "a"), *(tmp_path / "a").rglob("*")):
            seen.add((path.is_dir(), stat.S_IMODE(path.stat().st_mode)))

    store = snapshots_at(str(place), "t")
    store.write(replace(snapshot(1), sieve=look))
    look(io.BytesIO())
    assert seen == {(True, 0o700), (False, 0o600)}


def test_a_half_snapshot_that_another_process_writes_is_left_alone(tmp_path: Path) -> None:
    """A lock tells so: the number of a process says nothing in another container."""
    one, other = (snapshots_at(str(tmp_path), "t", keep=9) for _ in range(2))

    def interrupted(stream: BinaryIO) -> None:
        stream.write(b"sieve")
        other.write(snapshot(7))

    one.write(replace(snapshot(2), sieve=interrupted))
    assert one.kept_offsets(LOG_ID) == [7, 2]
    assert all(isinstance(found, SnapshotReader) for found in one.read(LOG_ID))
    assert list((tmp_path / "t").glob("*.partial")) == []


def test_two_processes_of_one_number_write_one_snapshot_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)
    one, other = (snapshots_at(str(tmp_path), "t", keep=9) for _ in range(2))

    def interrupted(stream: BinaryIO) -> None:
        stream.write(b"sieve")
        other.write(snapshot(2))

    one.write(replace(snapshot(2), sieve=interrupted))
    assert one.kept_offsets(LOG_ID) == [2]
    snapshots = one.read(LOG_ID)
    found = next(snapshots)
    assert isinstance(found, SnapshotReader)
    assert found.sieve().read() == b"sieve"


def test_the_sweep_takes_what_is_ours_alone(store: SnapshotStore, tmp_path: Path, stranger: int) -> None:
    store.write(snapshot(1))
    foreign, link, own = (
        tmp_path / "t" / f"index-0000000000000002-0badcafe.snapshot.{n}.partial" for n in range(3)
    )
    for path in (foreign, own):
        path.write_bytes(b"half")
    os.chown(foreign, stranger, -1)
    (tmp_path / "important").write_bytes(b"important")
    link.symlink_to(tmp_path / "important")
    store.write(snapshot(3))
    assert [path.exists() for path in (foreign, link, own, tmp_path / "important")] == [
        True,
        True,
        False,
        True,
    ]


def test_a_file_is_never_made_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        storage.private_file(str(tmp_path / "link"))
    assert not (tmp_path / "elsewhere").exists()


def test_a_snapshot_is_on_disk_before_it_has_its_name(
    store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, rename = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        held = os.fstat(descriptor)
        done.append("folder" if stat.S_ISDIR(held.st_mode) else f"file of {held.st_size}")
        sync(descriptor)

    def renamed(source: str, target: str) -> None:
        done.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    stored = store.write(snapshot(1))
    assert done == [f"file of {stored.size}", "rename", "folder"]


@pytest.mark.parametrize(("days", "stays"), [(0, True), (2, False)])
def test_in_a_store_without_locks_half_snapshots_go_by_their_age(days: int, stays: bool) -> None:
    files, folder = file_system(f"memory://bucket/aged-{days}")
    store = SnapshotStore(Storage((files, f"{folder}/t")), keep=2)
    store.write(snapshot(1))
    left = f"{folder}/t/index-0000000000000002-0badcafe.snapshot.0a1b.partial"
    files.pipe(left, b"half")
    files.store[left].modified -= timedelta(days=days)
    store.write(snapshot(3))
    assert files.exists(left) == stays


def test_a_listing_that_a_store_remembers_is_asked_for_anew(tmp_path: Path) -> None:
    mine, theirs = (snapshots_at(str(tmp_path), "t") for _ in range(2))
    seen: list[str] = []
    mine.storage._files.invalidate_cache = lambda *_: seen.append("asked")  # type: ignore[method-assign]
    assert mine.kept_offsets(LOG_ID) == []
    theirs.write(snapshot(1))
    assert mine.kept_offsets(LOG_ID) == [1]
    assert seen


@pytest.mark.parametrize(
    ("address", "said"), [("s3://bucket/x", "s3fs"), ("nowhere://x", "Protocol not known: nowhere")]
)
def test_an_address_that_nothing_serves_is_named_by_lint_and_run(address: str, said: str) -> None:
    settings = Settings.model_validate({"state": {"dir": address}})
    with pytest.raises(UsageError, match=said):
        snapshots_at(settings.state.dir, "t")
    ((key, problem),) = cross_check(settings, {})
    assert key == "state.dir"
    assert said in problem


def test_a_snapshot_of_another_configuration_is_named_and_the_log_does(
    tmp_path: Path, scheme: Scheme
) -> None:
    settings = base(str(tmp_path / "state"))
    world: Deployment = deployment(settings, scheme)
    world.produce(posts(1, COUNT))
    assert world.run(settings, 300)
    assert list((tmp_path / "state" / "t").iterdir())
    world.produce(posts(2, 5))
    assert world.run(exact_window(settings, 9_000), 500)
    assert any("exact" in notice for notice in world.notices), world.notices
    kinds = world.judged()
    assert len(kinds) == COUNT + 5
    uniques = world.cluster.log(Partition("posts.unique", 0)).visible()
    assert len(list(uniques)) == sum(kind is Kind.UNIQUE for kind in kinds.values())


def test_no_byte_of_a_snapshot_may_differ(store: SnapshotStore) -> None:
    path = Path(store.write(snapshot(1)).name)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert all(isinstance(found, UnreadableError) for found in store.read(LOG_ID))
    path.write_bytes(whole)
    (found,) = [found.ledger() for found in store.read(LOG_ID) if isinstance(found, SnapshotReader)]
    assert found.books == {}
