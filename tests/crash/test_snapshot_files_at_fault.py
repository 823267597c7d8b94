"""Files of a snapshot that are damaged, foreign or of another time: a clear line, and no message is lost."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.crash.members import MESSAGES, Member, check_folder, run, settings_at, verdicts_undisturbed
from tests.crash.snapshot_steps import small_pieces
from tests.saved.test_journal import lose
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import Deployment, changed, deployment, posts
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index import index
from twinsieve.pipeline.saved import storage
from twinsieve.pipeline.saved.storage import NewFile
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.scheme import Scheme

pytestmark = pytest.mark.matrix

MORE = 40


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pieces."""
    small_pieces(monkeypatch)


@pytest.fixture(scope="module")
def unbroken(scheme: Scheme, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Kind]:
    settings = settings_at(str(tmp_path_factory.mktemp("state")))
    return verdicts_undisturbed(scheme, settings, MESSAGES, MORE)


def stopped(settings: Settings, scheme: Scheme) -> Deployment:
    """A deployment whose only process has judged most messages and ended."""
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    member = Member(world, settings, "one")
    run(world, member)
    member.end()
    world.clock.sleep(20.0)
    world.produce(posts(2, MORE))
    return world


def go_on(world: Deployment, settings: Settings) -> Member:
    member = Member(world, settings, "one")
    run(world, member)
    # It may have had nothing to judge.
    while not member.index.live:
        member.step()
    member.end()
    return member


def told(world: Deployment) -> list[str]:
    """Notices but those that an exact window of 80 messages, which is passed within a snapshot, brings."""
    return [notice for notice in world.notices if "the exact window passed it" not in notice]


def newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: path.name)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 8
    path.write_bytes(content)


def swap(path: Path) -> None:
    """The content of another file of its sort."""
    others = [other for other in sorted(path.parent.glob(f"{path.name[:5]}*")) if other != path]
    path.write_bytes(others[0].read_bytes() if others else b"something else")


def of_another_scheme(path: Path) -> None:
    content = path.read_bytes()
    start = content.index(b'"scheme"')
    path.write_bytes(
        content[:start] + content[start:].replace(b":", b"=", 1).replace(b"=", b":", 1)[:-3] + b"xyz"
    )


HARMS: dict[str, Callable[[Path], None]] = {
    "missing": Path.unlink,
    "cut": cut,
    "a bit": flip_a_bit,
    "swapped": swap,
    "another scheme": of_another_scheme,
    "empty": lambda path: path.write_bytes(b"") and None,
}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("pattern", ["kept-*", "bloom-*", "keys-*", "*.snapshot"])
def test_a_damaged_file_is_named_and_the_older_snapshot_or_the_log_does(
    pattern: str, harm: str, unbroken: dict[int, Kind], scheme: Scheme, tmp_path: Path
) -> None:
    settings = settings_at(str(tmp_path))
    world = stopped(settings, scheme)
    old = world.judged()
    path = newest(tmp_path / "t", pattern)
    HARMS[harm](path)
    member = go_on(world, settings)
    world.check_whole(old, MESSAGES + MORE)
    assert world.judged() == unbroken
    if (pattern, harm) != ("*.snapshot", "missing"):
        assert any(path.name in notice and "\n" not in notice for notice in world.notices), world.notices
    assert len(world.notices) <= 3, world.notices
    check_folder(member)


def test_where_the_log_was_trimmed_too_it_stops_and_says_which_blocks_are_gone(
    scheme: Scheme, tmp_path: Path
) -> None:
    settings = settings_at(str(tmp_path))
    world = stopped(settings, scheme)
    for path in (tmp_path / "t").glob("kept-*"):
        path.unlink()
    log = world.cluster.log(Partition("t.fingerprints", 0))
    log.trim(10)
    with pytest.raises(
        StateError, match=r"missing.*the log before block 10 was deleted.*--without-snapshots"
    ):
        Member(world, settings, "one")


@pytest.mark.parametrize("change", ["smaller window", "larger window"])
def test_another_window_goes_on_with_the_same_files(change: str, scheme: Scheme, tmp_path: Path) -> None:
    settings = settings_at(str(tmp_path))
    world = stopped(settings, scheme)
    old = world.judged()
    for number, now in enumerate((changed(settings, change), settings, changed(settings, change))):
        member = go_on(world, now)
        assert not told(world)
        check_folder(member)
        world.clock.sleep(20.0)
        world.produce(posts(3 + number, MORE))
    member = go_on(world, settings)
    assert member.index.follower.gaps == 0
    world.check_whole(old, MESSAGES + 4 * MORE)


def test_a_snapshot_of_an_older_version_is_named_and_keeps_no_file(
    unbroken: dict[int, Kind], scheme: Scheme, tmp_path: Path
) -> None:
    settings = settings_at(str(tmp_path))
    world = stopped(settings, scheme)
    for path in (tmp_path / "t").iterdir():
        if path.suffix == ".snapshot":
            content = path.read_bytes()
            path.write_bytes(content[:4] + struct.pack("<H", 3) + content[6:])
    foreign = tmp_path / "t" / "index-0000000000000009-0badcafe.snapshot"
    foreign.write_bytes(b"TSVS" + struct.pack("<H", 3) + bytes(400))
    member = go_on(world, settings)
    assert world.judged() == unbroken
    assert all("format version 3, this program reads 7" in notice for notice in told(world)), world.notices
    assert told(world)
    check_folder(member, strict=False)
    assert foreign.exists(), "a snapshot of another log is left alone"


def test_two_apps_and_another_log_in_one_folder_leave_each_other_alone(
    scheme: Scheme, tmp_path: Path
) -> None:
    settings = settings_at(str(tmp_path))
    one, other = deployment(settings, scheme), deployment(settings, scheme)
    other.cluster.topics["t.fingerprints"].topic_id = b"another log....."
    members = []
    for number, world in enumerate((one, other)):
        world.produce(posts(number, MESSAGES))
        members.append(Member(world, settings, "one"))
    for _ in range(400):
        for member in members:
            member.step()
    for world, member in zip((one, other), members, strict=True):
        assert world.done()
        member.end()
    for number, world in enumerate((one, other)):
        world.clock.sleep(20.0)
        world.produce(posts(5 + number, MORE))
        member = go_on(world, settings)
        assert not told(world)
        assert member.index.snapshots.stored_ms is not None
        world.check_whole({}, MESSAGES + MORE)


class Disk:
    """Local files whose bytes are refused, or wait, while it says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self.flows = Event()
        self.flows.set()
        plain = storage.private_file

        def made(path: str) -> Any:
            return _File(self, plain(path))

        monkeypatch.setattr(storage, "private_file", made)


class _File:
    def __init__(self, disk: Disk, file: Any) -> None:
        self._disk = disk
        self._file = file

    def write(self, data: bytes) -> Any:
        self._disk.flows.wait()
        if self._disk.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def step(member: Member, times: int) -> None:
    for _ in range(times):
        member.step()


@pytest.mark.parametrize("from_step", [0, 7, 30])
def test_a_full_disk_stops_nothing_and_the_next_snapshot_is_whole(
    from_step: int,
    unbroken: dict[int, Kind],
    scheme: Scheme,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = Disk(monkeypatch)
    settings = settings_at(str(tmp_path))
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    member = Member(world, settings, "one")
    step(member, from_step)
    disk.full = True
    run(world, member)
    world.clock.sleep(60.0)
    step(member, 10)
    failures, notices = member.index.snapshots.failures, member.index.notices
    assert failures > 1
    assert len(notices) == 1, "one line, not one for each failure"
    assert "cannot be written (No space left on device); free space" in notices[0]
    notices.clear()
    disk.full = False
    world.clock.sleep(60.0)
    world.produce(posts(2, MORE))
    run(world, member)
    step(member, 10)
    assert any(line.startswith("snapshot stored") for line in member.index.log_lines)
    assert any("restoring from the last snapshot and the log" in notice for notice in world.notices)
    world.notices.clear()
    member.kill()
    del member
    last = go_on(world, settings)
    assert last.index.follower.gaps == 0
    assert world.judged() == unbroken
    assert not told(world)


def test_a_disk_that_hangs_stops_nothing_and_the_next_snapshot_is_whole(
    unbroken: dict[int, Kind], scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "PATIENCE_S", 0.01)
    disk = Disk(monkeypatch)
    settings = settings_at(str(tmp_path))
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    member = Member(world, settings, "one")
    step(member, 7)
    # The thread that writes pieces hangs; that of snapshots (`Later`) would stop this test.
    member.index.snapshots._every_s = 1e9
    member.index.snapshots.finished(wait=True)
    disk.flows.clear()
    run(world, member)
    assert member.index._journal is not None
    assert member.index._journal._complete_from > 60, "records found no room"
    member.index.snapshots._every_s = 0.0
    world.clock.sleep(60.0)
    member.index.snapshots.judged()
    step(member, 10)
    assert member.index.snapshots.failures
    (notice,) = member.index.notices
    assert "the disk is too slow for what is kept" in notice
    member.index.notices.clear()
    disk.flows.set()
    # A busy machine takes longer than the patience above.
    monkeypatch.setattr(index, "PATIENCE_S", 60.0)
    assert member.index._journal is not None
    member.index._journal._writer.submit(lambda: None).result()
    world.produce(posts(2, MORE))
    world.clock.sleep(60.0)
    run(world, member)
    member.end()
    (restoring,) = told(world)
    assert "restoring from" in restoring
    assert world.judged() == unbroken
    check_folder(member)


@pytest.mark.parametrize("why", ["a restore was tried", "the log is deleted", "files are damaged"])
def test_the_window_passes_what_was_lost_where_no_restore_mends_it(
    why: str, unbroken: dict[int, Kind], scheme: Scheme, tmp_path: Path
) -> None:
    settings = settings_at(str(tmp_path))
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    world.produce(posts(2, MORE))
    member = Member(world, settings, "one")
    run_until_snapshots(member, 2)
    index, log = member.index, world.cluster.log(Partition("t.fingerprints", 0))
    assert index._journal is not None
    lose(index._journal, index.state.sieve.stats().kept)
    if why == "a restore was tried":
        index._pace.mends_from_s = 1e12
    else:
        index._journal._is_in_state = why == "the log is deleted"
        log.trim(index.snapshots.newest[0] + 1 if why == "the log is deleted" else 1)
    run(world, member)
    assert member.index is index
    assert any("cannot be written (lost)" in notice for notice in member.index.notices), member.index.notices
    member.index.notices.clear()
    member.end()
    assert not told(world), "the window has passed what was missing"
    assert world.judged() == unbroken
    check_folder(member)


def test_a_process_that_ends_while_its_snapshot_is_written_leaves_no_broken_one(
    unbroken: dict[int, Kind], scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is abandoned between the files and the manifest, which another thread still writes."""
    settings = settings_at(str(tmp_path))
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    world.produce(posts(2, MORE))
    member = Member(world, settings, "one")
    run_until_snapshots(member, 3)
    plain = NewFile.finish

    def finished(file: NewFile) -> None:
        if file.name.endswith(".snapshot"):
            member.index.abandon()
        plain(file)

    monkeypatch.setattr(NewFile, "finish", finished)
    member.index.snapshots._every_s = 0.0
    member.index.snapshots.judged()
    member.index.snapshots.begin(member.index.state, member.index.follower.decisions_at)
    assert member.index.snapshots.finished(wait=True) is not None
    monkeypatch.setattr(NewFile, "finish", plain)
    member.kill()
    last = go_on(world, settings)
    assert not told(world)
    assert world.judged() == unbroken
    check_folder(last)


def run_until_snapshots(member: Member, count: int) -> None:
    """Step until this many snapshots are stored."""
    for _ in range(500):
        member.step()
        if len(member.index.log_lines) >= count:
            member.index.snapshots.finished(wait=True)
            return
    raise AssertionError("too few snapshots")


@pytest.mark.parametrize("harm", ["a bit", "missing"])
def test_a_piece_that_is_damaged_while_its_process_runs_is_replaced(
    harm: str, unbroken: dict[int, Kind], scheme: Scheme, tmp_path: Path
) -> None:
    """A merge meets the damaged piece; the memory of the process still has its messages."""
    settings = settings_at(str(tmp_path))
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    world.produce(posts(2, MORE))
    member = Member(world, settings, "one")
    run_until_snapshots(member, 4)
    HARMS[harm](newest(tmp_path / "t", "kept-*.piece"))
    run(world, member)
    member.kill()
    last = go_on(world, settings)
    assert last.index.state.next_offset > 0
    assert world.judged() == unbroken
    check_folder(last)
