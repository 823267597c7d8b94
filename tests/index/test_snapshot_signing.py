"""Snapshots that are signed with a key: others are refused with what to do, and keys can be turned on and changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.index.test_snapshot_faults import LOG_ID, snapshot
from tests.memory.broker import ManualClock
from tests.stored import journal_at, storage_at
from tests.twins import AtOnce, HashSieve
from twinsieve.pipeline.index.snapshot_store import SnapshotReader, SnapshotStore
from twinsieve.pipeline.index.snapshot_writer import SnapshotWriter
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.saved import UnreadableError
from twinsieve.pipeline.saved.manifest import Holds, StateFile
from twinsieve.pipeline.saved.signing import Signing
from twinsieve.pipeline.service.build import state_storage
from twinsieve.pipeline.settings.checks import cross_check
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.settings.model import Settings

OLD, NEW = "o" * 32, "n" * 32


def store_with(folder: Path, *keys: str, unsigned: bool = False, app: str = "t") -> SnapshotStore:
    storage = storage_at(str(folder), "t")
    storage.signing = Signing(keys, takes_unsigned=unsigned or not keys, app=app)
    return SnapshotStore(storage, 9)


def newest(store: SnapshotStore) -> SnapshotReader | UnreadableError:
    # A reader works as long as what has made it.
    for found in store.read(LOG_ID):
        if isinstance(found, SnapshotReader):
            found.ledger()
        return found
    raise AssertionError("there is none")


@pytest.mark.parametrize(
    ("keys", "app", "fits"),
    [([OLD], "t", True), ([NEW, OLD], "t", True), ([NEW], "t", False), ([OLD], "another", False)],
)
def test_a_snapshot_is_read_by_who_has_its_key(tmp_path: Path, keys: list[str], app: str, fits: bool) -> None:
    store_with(tmp_path, OLD).write(snapshot(1))
    found = newest(store_with(tmp_path, *keys, app=app))
    assert isinstance(found, SnapshotReader) is fits
    if not fits:
        assert "state.key_file does not have; delete it, or add that key" in str(found)


def test_an_unsigned_snapshot_is_refused_unless_the_keys_say_otherwise(tmp_path: Path) -> None:
    store_with(tmp_path).write(snapshot(1))
    refused = newest(store_with(tmp_path, NEW))
    assert isinstance(refused, UnreadableError)
    assert "is not signed with a key of state.key_file; delete it, or add the line `unsigned`" in str(refused)
    turned_on = store_with(tmp_path, NEW, unsigned=True)
    assert isinstance(newest(turned_on), SnapshotReader)
    turned_on.write(snapshot(2))
    assert isinstance(newest(store_with(tmp_path, NEW)), SnapshotReader)


@pytest.mark.parametrize("place", [0, 4, 30, 90, -40, -1])
def test_one_changed_byte_is_refused_before_anything_is_read(tmp_path: Path, place: int) -> None:
    store = store_with(tmp_path, NEW)
    store.write(snapshot(1))
    (path,) = (tmp_path / "t").iterdir()
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    refused = next(store.read(LOG_ID))
    assert isinstance(refused, UnreadableError)
    assert "state.key_file" in str(refused)


def test_names_that_a_stranger_gave_push_no_snapshot_out(tmp_path: Path) -> None:
    """They would also have let the index delete blocks of the log that are not judged yet."""
    store = SnapshotStore(store_with(tmp_path, NEW).storage, 2)
    store.write(snapshot(1))
    (first,) = (tmp_path / "t").iterdir()
    for at in (900, 901):
        (tmp_path / "t" / first.name.replace("01-", f"{at}-")[-len(first.name) :]).write_bytes(b"forged")
    store.write(snapshot(2))
    assert [at for at in store.kept_offsets(LOG_ID) if at < 900] == [2, 1]


@pytest.mark.parametrize(
    ("keys", "other", "unsigned"),
    [([NEW], [], False), ([NEW], [OLD], False), ([NEW], [OLD], True), ([], [NEW], False)],
)
def test_who_lacks_a_key_deletes_nothing_that_others_can_read(
    tmp_path: Path, keys: list[str], other: list[str], unsigned: bool
) -> None:
    """In a rolling update some processes have the new key, and some do not have it yet."""
    signing, stranger = store_with(tmp_path, *keys), store_with(tmp_path, *other, unsigned=unsigned)
    name = "kept-1-0a1b2c3d.piece"
    made = signing.storage.create(name)
    made.finish()
    made.release()
    digest = signing.storage.signing.told("0" * 32)
    signing.write(replace(snapshot(1), files=(StateFile(name, Holds.KEPT, 0, digest, end=1),)))
    journal, clock = journal_at(stranger.storage), ManualClock()
    writer = SnapshotWriter(stranger, journal, (LOG_ID, bytes(16)), bytes(16), AtOnce(), clock, 0.0)

    def stored() -> str | None:
        writer.begin(IndexState(HashSieve()), 0)
        done = writer.finished(wait=True)
        assert done is not None
        return done.undeleted

    assert "until then no file of an older snapshot is deleted" in (stored() or "")
    assert (tmp_path / "t" / name).exists()
    Path(signing.write(snapshot(1)).name).unlink()
    assert stored() is None
    assert not (tmp_path / "t" / name).exists(), "nobody names it any more"


def test_the_key_comes_from_a_file_and_a_short_one_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{NEW}\n{OLD}\nunsigned\n")
    (tmp_path / "a.yaml").write_text("app: t\nstate: {key_file: key, dir: there}\n")
    signing = state_storage(load_settings(tmp_path / "a.yaml")).signing
    assert len(signing.keys) == 2
    assert signing.takes_unsigned
    for text in ("short", f"{NEW}\nshort", "unsigned", ""):
        said = cross_check(Settings.model_validate({"app": "t", "state": {"key": text}}), {})
        assert [key for key, _ in said if key.startswith("state")] == ["state.key"]
