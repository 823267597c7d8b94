"""Standbys, frozen leaders and stores without locks: whoever writes into the folder harms nobody's snapshots."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

import tests.shared_store  # (registers its address)
from tests.crash.members import Member, check_folder, run, settings_at, verdicts_undisturbed
from tests.crash.snapshot_steps import small_pieces
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import Deployment, deployment, posts, with_section
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.service.build import state_storage
from twinsieve.pipeline.settings.model import WindowSettings
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.scheme import Scheme

pytestmark = pytest.mark.matrix

MESSAGES = 700


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pieces."""
    small_pieces(monkeypatch)


@pytest.fixture(scope="module")
def unbroken(scheme: Scheme, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Kind]:
    settings = settings_at(str(tmp_path_factory.mktemp("state")))
    return verdicts_undisturbed(scheme, settings, MESSAGES)


@pytest.mark.parametrize("place", ["the same folder", "its own folder"])
@pytest.mark.parametrize("method", ["bloom", "trie"])
def test_a_standby_that_follows_for_long_keeps_few_files_and_takes_over(
    method: str,
    place: str,
    unbroken: dict[int, Kind],
    scheme: Scheme,
    tmp_path: Path,
) -> None:
    settings = settings_at(str(tmp_path / "one"), method)
    own = settings if place == "the same folder" else settings_at(str(tmp_path / "two"), method)
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    leader = Member(world, settings, "one")
    for _ in range(40):
        leader.step()
    # The head of a trie is of a thousand messages, so its runs stay.
    restored_from = {
        path.name for path in (tmp_path / "one" / "t").iterdir() if not path.name.startswith("head-")
    }
    standby = Member(world, own, "two", works=False)
    most = 0
    for _ in range(2_000):
        leader.step()
        standby.step()
        journal = standby.index._journal
        assert journal is not None
        most = max(most, len(journal._unannounced))
        if len(world.judged()) > MESSAGES - 100:
            break
    assert most <= 7, "pieces that the window has passed are deleted"
    assert not restored_from & {path.name for path in (tmp_path / "one" / "t").iterdir()}
    leader.kill()
    del leader
    worker = Member(world, settings, "worker")
    run(world, standby, worker)
    assert standby.index.live
    worker.end()
    standby.end()
    assert standby.index.snapshots.stored_ms is not None
    assert not [notice for notice in world.notices if "cannot be" in notice], world.notices
    if method == "bloom":
        assert world.judged() == unbroken
    world.check_whole({}, MESSAGES)
    if place == "its own folder":
        check_folder(standby)


def test_a_standby_uses_the_files_of_a_leader_that_deleted_those_it_was_restored_from(
    scheme: Scheme, tmp_path: Path
) -> None:
    """The window is so large that it still needs all that was kept before the standby began."""
    settings = with_section(
        settings_at(str(tmp_path)), "near", window=WindowSettings(messages=5_000, age=None)
    )
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    leader = Member(world, settings, "one")
    for _ in range(36):
        leader.step()
    standby = Member(world, settings, "two", works=False)
    assert standby.index._journal is not None
    restored_from = {file.name for file in standby.index._journal._files}
    assert restored_from
    for _ in range(500):
        leader.step()
        standby.step()
        if not restored_from <= set(standby.index._journal._storage.names()):
            break
    assert not restored_from <= set(standby.index._journal._storage.names())
    leader.kill()
    worker = Member(world, settings, "worker")
    run(world, standby, worker)
    for member in (worker, standby):
        member.end()
    assert standby.index.snapshots.stored_ms is not None
    assert not [notice for notice in world.notices if "cannot be" in notice], world.notices
    world.check_whole({}, MESSAGES)


@pytest.mark.parametrize("differs", ["nothing", "numbering", "history"])
def test_a_standby_uses_the_files_of_a_leader_only_if_history_and_numbering_are_the_same(
    differs: str, scheme: Scheme, tmp_path: Path
) -> None:
    """Otherwise the same number may be another message."""
    settings = with_section(
        settings_at(str(tmp_path)), "near", window=WindowSettings(messages=5_000, age=None)
    )
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    leader = Member(world, settings, "one")
    standby = Member(world, settings, "two", works=False)
    first, store, journal = standby.index, standby.index._store, standby.index._journal
    assert store is not None
    assert journal is not None
    for _ in range(40):
        leader.step()
        standby.step()
    # The standby now lacks what the leader has.
    journal._writer.submit(journal._discard_open).result()
    lacks_to = standby.index.state.sieve.stats().kept
    for _ in range(40):
        leader.step()
        standby.step()
    log_id = standby.index._ids[0]
    its_numbering, link, files = store.newest(log_id)
    last = store.kept_offsets(log_id)[0]
    state = standby.index.state
    assert its_numbering == leader.index.state.numbering == state.numbering, "both began with the log"
    assert link in state.links
    if differs == "numbering":
        state.miss(0, 1)
    if differs == "history":
        state.links.remove(link)
    assert max(file.end for file in files) > lacks_to > 0
    leader.kill()
    worker = Member(world, settings, "worker")
    for _ in range(3_000):
        standby.step()
        worker.step()
        if store.kept_offsets(log_id)[0] > last and world.done():
            break
    assert standby.index.live
    assert store.newest(log_id)[0] == standby.index.state.numbering
    assert (standby.index is first) == (differs == "nothing"), "else it has to restore"
    worker.end()
    standby.end()
    world.check_whole({}, MESSAGES)


def test_a_frozen_leader_that_writes_on_harms_nothing(
    unbroken: dict[int, Kind], scheme: Scheme, tmp_path: Path
) -> None:
    settings = settings_at(str(tmp_path))
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    leader = Member(world, settings, "one")
    standby = Member(world, settings, "two", works=False)
    for _ in range(400):
        leader.step()
        standby.step()
        if len(world.judged()) > 300 and leader.index.snapshots._running is not None:
            break
    frozen = leader.index.snapshots._running
    assert frozen is not None, "it was to be frozen while it writes"
    world.clock.sleep(20.0)
    worker = Member(world, settings, "worker")
    for _ in range(4_000):
        standby.step()
        worker.step()
        if len(standby.index.log_lines) >= 3:
            break
    assert standby.index.live
    # It wakes: first its thread goes on, then itself, which learns that another process judges.
    with suppress(StateError):
        leader.index.snapshots.finished(wait=True)
    for _ in range(20):
        try:
            leader.step()
        except BrokerError:
            break
    leader.index.abandon()
    run(world, standby, worker)
    worker.end()
    standby.end()
    world.clock.sleep(20.0)
    world.produce(posts(2, 40))
    last = Member(world, settings, "four")
    assert last.index.state.next_offset > 0
    run(world, last)
    last.end()
    # The store in memory is not made for threads: a listing may fail while another thread adds a file.
    bad = [line for line in world.notices if "cannot be" in line or "missing" in line]
    assert not [line for line in bad if "cannot be listed (KeyError)" not in line]
    assert {at: kind for at, kind in world.judged().items() if at < MESSAGES} == unbroken
    world.check_whole({}, MESSAGES + 40)
    check_folder(last)


@pytest.mark.parametrize("segment", [25, 16_000_000])
@pytest.mark.parametrize("protocol", ["memory", "local", tests.shared_store.PROTOCOL])
def test_any_store_holds_pieces_merges_and_deletes_them(
    protocol: str, segment: int, unbroken: dict[int, Kind], scheme: Scheme, tmp_path: Path
) -> None:
    settings = settings_at(f"{protocol}://{tmp_path}", segment=segment)
    store = state_storage(settings)
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    member = Member(world, settings, "one")
    _run_some(world, member)
    stranger = f"kept-{7:016d}-0badcafe.piece"
    half = f"kept-{8:016d}-0badcafe.piece.0123.partial"
    for name in (stranger, half):
        store._files.pipe(store.path(name), b"of another process")
    member.kill()
    member = Member(world, settings, "one")
    assert member.index.state.next_offset > 0, "restored from a snapshot"
    run(world, member)
    there = set(store.names())
    if store.is_local:
        assert not {stranger, half} & there, "nobody holds their locks"
    else:
        assert {stranger, half} <= there, "they may be of a process that goes on"
    if protocol == "memory":
        for name in (stranger, half):
            store._files.store[store.path(name)].modified -= timedelta(days=2)
    world.produce(posts(2, 200))
    run(world, member)
    member.end()
    if protocol != tests.shared_store.PROTOCOL:
        assert not {stranger, half} & set(store.names())
    if store.is_local:
        check_folder(member)
    # As above: fsspec's memory cannot be listed while another thread deletes in it.
    bad = [notice for notice in world.notices if "cannot be" in notice or "missing" in notice]
    assert not [
        notice for notice in bad if protocol != "memory" or "cannot be listed (KeyError)" not in notice
    ]
    assert {at: kind for at, kind in world.judged().items() if at < MESSAGES} == unbroken


def _run_some(world: Deployment, member: Member) -> None:
    for _ in range(1_000):
        member.step()
        if len(world.judged()) > MESSAGES // 2:
            return
    raise AssertionError("stuck")
