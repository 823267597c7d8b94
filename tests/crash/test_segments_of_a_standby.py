"""A standby holds its sealed segments back: only the index that judges writes segments to the store. One that takes
over writes those that no snapshot names, and may be killed at each step of that."""

from __future__ import annotations

from pathlib import Path

import pytest

import tests.shared_store  # (registers its address)
from tests.crash.members import MESSAGES, Member, check_folder, settings_at, verdicts_undisturbed
from tests.crash.snapshot_steps import TAKEOVER, Killed, SnapshotStep, small_pieces
from tests.memory.broker import CrashError
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import Deployment, deployment, posts
from twinsieve.pipeline.broker.ports import Hook, no_hook
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.snapshot_store import SnapshotReader
from twinsieve.pipeline.saved.manifest import Holds
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.contract import Kind
from twinsieve.stages.judge.scheme import Scheme

pytestmark = pytest.mark.matrix
LATER = 90
Range = tuple[int, int]


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    small_pieces(monkeypatch)


@pytest.fixture(params=["folder", tests.shared_store.PROTOCOL])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    place = tmp_path / "state"
    return settings_at(str(place) if request.param == "folder" else f"{request.param}://{place}", segment=25)


@pytest.fixture(scope="module")
def unbroken(scheme: Scheme, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Kind]:
    settings = settings_at(str(tmp_path_factory.mktemp("state")), segment=25)
    return verdicts_undisturbed(scheme, settings, MESSAGES, LATER)


def written(member: Member) -> None:
    """Wait until the segments of a process are where it wants them."""
    journal = member.index._journal
    assert journal is not None
    journal.segments.scratch._writer.submit(int).result()
    journal.segments.thread.submit(int).result()


def held(member: Member) -> list[Range]:
    """The segments that a process holds back."""
    written(member)
    journal = member.index._journal
    assert journal is not None
    return [(each.first, each.end) for each in journal.segments._held]


def stored(member: Member) -> list[str]:
    """Names of all segments in the store."""
    store = member.index._store
    assert store is not None
    return [name for name in store.storage.names() if name.endswith(".segment")]


def named(member: Member) -> list[Range]:
    """The segments that the newest snapshot names."""
    store = member.index._store
    assert store is not None
    newest = next(store.read(member.index._ids[0]), None)
    assert isinstance(newest, SnapshotReader)
    return [(file.first, file.end) for file in newest.files if file.holds is Holds.SEGMENT]


def own_segments(member: Member) -> set[str]:
    """Names of the segments that a process has written, or uses."""
    journal = member.index._journal
    assert journal is not None
    return {file.name for file in journal._files if file.holds is Holds.SEGMENT}


def settle(world: Deployment, *members: Member) -> None:
    """Let all be emitted, snapshots be written, and the segments that they may name."""
    for number in range(3_000):
        for member in members:
            member.step()
            written(member)
        # Before an index deletes them behind its snapshots.
        world.decisions.update(world.cluster.log(Partition("t.decisions", 0)).visible())
        world.clock.sleep(0.01)
        if number >= 200 and world.done():
            return
    raise AssertionError(f"stuck: {world.notices}")


def started(settings: Settings, scheme: Scheme, hook: Hook = no_hook) -> tuple[Deployment, Member, Member]:
    """An index that has messages to judge, and a standby."""
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    first = Member(world, settings, "one")
    return world, first, Member(world, settings, "two", works=False, hook=hook)


def number_otherwise(member: Member) -> None:
    """As if it had begun at another block: no file of another process is of use to it."""
    member.index.state.numbering = bytes(range(16))


def check_swept(member: Member) -> None:
    """What killed processes left is deleted; in a store without locks that takes a day."""
    store = member.index._store
    assert store is not None
    if store.storage.is_local:
        check_folder(member)


def test_a_standby_leaves_no_segment_in_the_store(settings: Settings, scheme: Scheme) -> None:
    world, first, standby = started(settings, scheme)
    settle(world, first, standby)
    assert len(held(standby)) >= 2
    assert stored(standby)
    assert set(stored(standby)) <= own_segments(first)
    standby.end()
    first.end()
    check_folder(first)


@pytest.mark.parametrize("of", ["the one before", "nobody"])
def test_an_index_that_takes_over_writes_the_segments_that_no_snapshot_names(
    of: str, settings: Settings, unbroken: dict[int, Kind], scheme: Scheme
) -> None:
    world, first, standby = started(settings, scheme)
    settle(world, first, standby)
    back, before = held(standby), stored(first)
    first.kill()
    if of == "nobody":
        number_otherwise(standby)
    settle(world, standby)
    assert standby.index.live
    assert not held(standby)
    if of == "nobody":
        assert len(back) >= 2
        assert named(standby)[-len(back) :] == back
    else:
        assert not set(stored(standby)) - set(before), "none is written twice"
    world.produce(posts(2, LATER))
    worker = Member(world, settings, "three")
    settle(world, standby, worker)
    worker.end()
    standby.end()
    last = Member(world, settings, "two")
    assert last.index.state.sieve.stats().bytes_mapped  # type: ignore[attr-defined]
    assert last.index.state.next_offset == standby.index.state.next_offset, "it needs nothing of the log"
    settle(world, last)
    last.end()
    assert world.judged() == unbroken
    check_swept(last)


@pytest.mark.parametrize("step", TAKEOVER)
def test_a_kill_while_segments_are_held_back_or_written_changes_nothing(
    step: SnapshotStep,
    settings: Settings,
    unbroken: dict[int, Kind],
    scheme: Scheme,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed = Killed(monkeypatch, step)
    world, first, standby = started(settings, scheme, killed.check)
    killed.watch(standby.index)
    members = [first]
    if step is not SnapshotStep.HELD:
        settle(world, first, standby)
        first.kill()
        number_otherwise(standby)
        members = []
    with pytest.raises(CrashError):
        settle(world, *members, standby)
    killed.bury()
    standby.kill()
    world.produce(posts(2, LATER))
    members.append(Member(world, settings, "three"))
    settle(world, *members)
    for member in members:
        member.end()
    world.check_whole({}, MESSAGES + LATER)
    assert world.judged() == unbroken
    check_swept(members[-1])
