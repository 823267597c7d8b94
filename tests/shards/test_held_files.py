"""Files of segments that are missing, cut, foreign or not signed: a line, a count, another try; nothing stops."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any, BinaryIO

import pytest

import tests.shared_store  # (registers its address)
from tests.saved.test_journal import Life
from tests.shards.holding_shards import CONFIG, App
from tests.stored import storage_at
from tests.twins import AtOnce
from twinsieve.pipeline.saved import saved_files
from twinsieve.pipeline.saved.signing import Signing
from twinsieve.pipeline.shards.config import Problem
from twinsieve.pipeline.shards.shard import Shard
from twinsieve.stages.window.segments import Segment


def newest_file(app: App) -> Path:
    sizes = app.snapshots().newest(app.log_id)[2]
    name = max((file.first, file.name) for file in sizes if file.name.endswith(".segment"))[1]
    return Path(app.life.storage.path(name))


def answered(app: App) -> int:
    return len(app.answers())


def retried(app: App, shard: Shard) -> None:
    app.turn(shard, seconds=5.0)
    app.clock.sleep(300)
    app.turn(shard, seconds=8.0)


@pytest.mark.parametrize("fault", ["missing", "cut", "changed", "another"])
def test_a_file_that_is_not_what_was_written_is_told_once_and_tried_again(app: App, fault: str) -> None:
    path = newest_file(app)
    content = path.read_bytes()
    if fault == "missing":
        path.unlink()
    elif fault == "cut":
        path.write_bytes(content[:-5_000])
    elif fault == "changed":
        # Between arrays there are zeros, which nobody reads.
        at = next(at for at in range(len(content) // 2, len(content)) if content[at])
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    else:
        others = sorted(path.parent.glob("*.segment"))
        path.write_bytes(others[0].read_bytes())
    shard = app.shard()
    app.ask(2)
    app.turn(shard, seconds=60.0)
    assert shard.ready, "it does what it can"
    assert answered(app) == len(app.sealed()) - 1
    assert len([line for line in shard.holdings.notices if path.name in line]) == 1
    assert shard.holdings.problems[Problem.SEGMENT] >= 2
    path.write_bytes(content)
    retried(app, shard)
    assert answered(app) == len(app.sealed())


def test_no_room_for_a_copy_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(tmp_path)
    app.life = Life(storage_at(f"{tests.shared_store.PROTOCOL}://{tmp_path}"), CONFIG)
    app.judge(20)
    app.save()

    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(saved_files, "scratch_file", full)
    shard = app.shard()
    app.ask(1)
    app.turn(shard)
    assert not answered(app)
    assert shard.holdings.problems[Problem.SPACE] >= 1
    assert all("No space" in line for line in shard.holdings.notices)
    monkeypatch.undo()
    retried(app, shard)
    assert answered(app) == len(app.sealed())


def test_no_memory_for_a_segment_leaves_it_on_disk(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Segment) -> None:
        raise MemoryError("too many bytes")

    monkeypatch.setattr(Segment, "use_memory", refused)
    shard = app.shard()
    app.ask(1)
    app.turn(shard, seconds=5.0)
    assert answered(app) == len(app.sealed())
    assert shard.holdings.problems[Problem.SPACE] == len(app.sealed())


@pytest.mark.parametrize("held", [0, 2])
def test_memory_is_taken_up_to_the_setting_for_the_newest(app: App, held: int) -> None:
    sealed = app.life.sieve.near.segments.sealed
    shard = app.shard(memory=held * sealed[0].bytes_hot + 10)
    app.ask(1)
    app.turn(shard, seconds=5.0)
    assert answered(app) == len(app.sealed())
    in_memory = [span.first for span, one in shard.holdings.held.items() if one.segment.holds_memory]
    assert sorted(in_memory) == sorted(span.first for span in shard.holdings.held)[len(app.sealed()) - held :]


@pytest.mark.parametrize("foreign", [{"scheme": bytes(16)}, {"log_id": b"l" * 16}, "unsigned", "damaged"])
def test_a_snapshot_of_somebody_else_names_nothing(app: App, foreign: Any) -> None:
    path = next(Path(app.life.storage.folder).glob("*.snapshot"))
    if foreign == "unsigned":
        app.life.storage.signing = Signing(["k" * 32], takes_unsigned=False, app="app")
    elif foreign == "damaged":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.unlink()
        app.save(**foreign)
        (other,) = Path(app.life.storage.folder).glob("*.snapshot")
        other.rename(path)
    shard = app.shard()
    app.ask(1)
    app.turn(shard, seconds=20.0)
    assert not answered(app)
    assert shard.holdings.problems[Problem.MANIFEST] >= 1
    assert len(shard.holdings.notices) == 1
    assert not shard.ready


def test_a_newer_snapshot_that_cannot_be_used_leaves_what_is_held(app: App) -> None:
    shard = app.shard()
    app.turn(shard, seconds=5.0)
    before = len(app.sealed())
    app.judge(2)
    app.save()
    newest = max(Path(app.life.storage.folder).glob("*.snapshot"))
    newest.write_bytes(b"forged")
    app.ask(1)
    app.turn(shard, seconds=70.0)
    assert len([1 for blocks in app.answers().values() if 22 in blocks]) >= before - 1
    assert shard.holdings.problems[Problem.MANIFEST] >= 1
    newest.unlink()
    app.asked -= 1
    app.save()
    app.asked += 1
    assert newest.exists(), "another process writes it again"
    app.turn(shard, seconds=10.0)
    assert {segment[:2] for segment in app.sealed()} <= set(shard.holdings.held)


def test_a_manifest_that_names_another_file_for_a_segment_leaves_the_held_one(app: App) -> None:
    """Until the other file is here; this one is not what its digest says."""
    shard = app.shard()
    app.turn(shard, seconds=5.0)
    files = app.life.save()
    forged = [file._replace(digest="0" * 32) if file is files[0] else file for file in files]
    app.ask(1)
    app.save(files=tuple(forged))
    app.turn(shard, seconds=10.0)
    assert shard.holdings.problems[Problem.SEGMENT] >= 1
    app.ask(1)
    app.turn(shard)
    assert len([1 for blocks in app.answers().values() if 21 in blocks]) == len(app.sealed())


def test_new_segments_are_fetched_and_those_that_the_window_has_passed_go(app: App) -> None:
    shard = app.shard()
    app.turn(shard, seconds=5.0)
    before = set(shard.holdings.held)
    app.judge(12)
    app.save()
    app.turn(shard, seconds=10.0)
    named = {segment[:2] for segment in app.sealed()}
    assert named <= set(shard.holdings.held)
    assert before <= set(shard.holdings.held), "for the time of grace"
    app.turn(shard, seconds=65.0)
    assert set(shard.holdings.held) == named
    assert shard.answered == len(named)


def test_a_store_that_hangs_stops_no_answer(app: App) -> None:
    shard = app.shard(background=Hanging())
    app.turn(shard, seconds=5.0)
    assert shard.answered == 2
    for at in range(20, 40, 5):
        app.ask(5)
        app.commit(at)
        app.turn(shard, seconds=10.0)
    assert all(sorted(blocks) == list(range(20, 40)) for blocks in app.answers().values())
    assert not shard.ready


class Hanging:
    """A thread that looks, brings two segments and their memory and a third file at once, and hangs then."""

    def __init__(self) -> None:
        self._calls = 0
        self._at_once = AtOnce()

    def submit(self, call: Any) -> Any:
        self._calls += 1
        return self._at_once.submit(call) if self._calls <= 6 else self

    def done(self) -> bool:
        return False


def test_no_snapshot_is_no_problem(tmp_path: Path) -> None:
    app = App(tmp_path)
    app.ask(2)
    shard = app.shard()
    app.turn(shard, seconds=5.0)
    assert shard.ready
    assert not any(shard.holdings.problems.values())


def test_a_copy_whose_file_is_swept_meanwhile_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App(tmp_path)
    app.life = Life(storage_at(f"{tests.shared_store.PROTOCOL}://{tmp_path}"), CONFIG)
    app.judge(20)
    app.save()
    before, copy, swept = {segment[:2] for segment in app.sealed()}, saved_files.SavedFiles._copy_of, []

    def sweep(self: saved_files.SavedFiles, stream: BinaryIO, name: str) -> BinaryIO:
        if swept:
            return copy(self, stream, name)
        # The window passes all that the snapshot named; an object store says so to whoever reads on.
        app.judge(20)
        app.save()
        swept.append(name)
        raise FileNotFoundError(name)

    monkeypatch.setattr(saved_files.SavedFiles, "_copy_of", sweep)
    shard = app.shard()
    app.turn(shard, seconds=90.0)
    assert swept
    assert shard.holdings.problems == {Problem.SEGMENT: len(before)}
    now = {segment[:2] for segment in app.sealed()}
    assert not before & now
    assert set(shard.holdings.held) == now
    assert shard.answered == len(now)


def test_a_file_that_no_snapshot_names_is_not_used(app: App) -> None:
    """It may be swept at any time."""
    named = set(app.sealed())
    app.judge(6)
    files = {path.name for path in Path(app.life.storage.folder).glob("*.segment")}
    assert files - {file.name for file in app.snapshots().newest(app.log_id)[2]}
    shard = app.shard()
    app.ask(1)
    app.turn(shard, seconds=20.0)
    assert set(app.answers()) == named
    app.save()
    app.turn(shard, seconds=8.0)
    assert set(app.answers()) > named
