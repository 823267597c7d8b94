"""Shared snapshots, so that the index deletes its log behind them: what the log cannot bring back any more."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from tests.memory.clients import MemoryAdmin
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import (
    COUNT,
    IN,
    Deployment,
    base,
    deployment,
    exact_window,
    posts,
    with_section,
)
from tests.shared_store import PROTOCOL
from twinsieve.pipeline.broker.mark import moved
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.ends import recorded_behind_snapshots
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.scheme import Scheme

LOG = Partition("t.fingerprints", 0)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """State at an address that counts as shared storage."""
    return base(f"{PROTOCOL}://{tmp_path / 'shared'}")


@pytest.fixture
def world(settings: Settings, scheme: Scheme) -> Deployment:
    """A deployment that has judged `COUNT` posts, snapshots taken on the way, the log trimmed behind them."""
    made = deployment(settings, scheme)
    made.produce(posts(1, COUNT))
    assert made.run(settings, 400)
    assert made.cluster.log(LOG).beginning > 0
    return made


def _all_again(world: Deployment) -> None:
    """As `reset --to earliest`: the offset moves, the mark stays."""
    offsets = world.cluster.group(Names("t").workers).offsets
    topic_id = world.cluster.topics[IN.topic].topic_id
    offsets[IN] = moved(offsets[IN], topic_id, 0)


@pytest.mark.parametrize("change", ["nothing", "exact window", "near method"])
def test_what_was_judged_stays_judged_under_other_settings(
    change: str, settings: Settings, world: Deployment
) -> None:
    before = world.judged()
    after = settings
    if change == "exact window":
        after = exact_window(settings, 9_000)
    if change == "near method":
        after = with_section(settings, "near", method="none")
    _all_again(world)
    world.produce(posts(4, 20))
    assert world.run(after, 1_000)
    judged = world.judged()
    assert {at: judged[at] for at in before} == before
    origins = world.origins("posts.unique") + world.origins("posts.duplicates")
    assert sorted(origins) == list(range(COUNT + 20)), "each came out once"


def test_copies_are_found_in_what_is_left_of_the_window(settings: Settings, world: Deployment) -> None:
    texts = list(posts(1, COUNT))
    kept = [texts[at] for at, kind in world.judged().items() if kind is Kind.UNIQUE][-30:]
    world.produce(iter(kept))
    assert world.run(exact_window(settings, 9_000), 1_000)
    again = list(world.judged().values())[COUNT:]
    assert again == [Kind.EXACT] * 30, "the near stage's ring knows its keys"
    assert any("are restored that fit the settings" in notice for notice in world.notices)


def test_snapshots_that_cannot_be_read_stop_and_say_what_to_do(settings: Settings, world: Deployment) -> None:
    files = fsspec.filesystem(PROTOCOL)
    kept = files.glob(f"{settings.state.dir}/t/*.snapshot")
    content = {name: files.cat(name) for name in kept}
    for name in kept:
        files.pipe(name, content[name][:-1])
    world.produce(posts(4, 20))
    with pytest.raises(
        StateError, match=r"is damaged or cut.*log before block \d+ was deleted: restore a snapshot"
    ):
        world.run(settings, 100)
    for name in kept:
        files.pipe(name, content[name])
    assert world.run(settings, 400)
    assert len(world.judged()) == COUNT + 20


def test_without_any_snapshot_it_stops_unless_it_is_told_to_go_on(
    settings: Settings, world: Deployment
) -> None:
    fsspec.filesystem(PROTOCOL).rm(settings.state.dir, recursive=True)
    world.produce(posts(4, 20))
    for _ in range(2):
        with pytest.raises(
            StateError, match=r"deleted because snapshots hold them.*`twinsieve run --without-snapshots`"
        ):
            world.run(settings, 100)
    assert len(world.judged()) == COUNT
    assert world.run(settings, 400, needs_snapshots=False)
    assert any(
        "copies of messages in the deleted blocks are emitted again" in notice for notice in world.notices
    )
    assert len(world.judged()) == COUNT + 20
    # From then on snapshots are there again.
    world.produce(posts(5, 20))
    assert world.run(settings, 400)


@pytest.mark.parametrize("wrong", [f"{PROTOCOL}://elsewhere/{{}}", "{}"], ids=["shared", "a folder"])
def test_a_mistyped_place_of_snapshots_stops_and_loses_nothing(
    wrong: str, settings: Settings, world: Deployment, tmp_path: Path
) -> None:
    before = world.judged()
    _all_again(world)
    world.produce(posts(4, 20))
    with pytest.raises(StateError, match="correct state"):
        world.run(with_section(settings, "state", dir=wrong.format(tmp_path / "mistyped")), 100)
    assert world.run(settings, 1_000)
    judged = world.judged()
    assert {at: judged[at] for at in before} == before
    assert len(judged) == COUNT + 20


def test_nothing_is_deleted_behind_snapshots_before_that_is_on_record(
    settings: Settings, scheme: Scheme, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete, said = MemoryAdmin.delete_records, []

    def deleting(self: MemoryAdmin, before: dict[Partition, int]) -> None:
        said.append(recorded_behind_snapshots(made.cluster.group(Names("t").index).offsets.get(LOG)))
        delete(self, before)

    monkeypatch.setattr(MemoryAdmin, "delete_records", deleting)
    made = deployment(settings, scheme)
    made.produce(posts(1, COUNT))
    assert made.run(settings, 400)
    assert set(said) == {True}


def test_a_process_that_keeps_its_snapshots_for_itself_needs_none(scheme: Scheme, tmp_path: Path) -> None:
    """Its log is kept as long as the windows; a new machine begins with that."""
    settings = base(str(tmp_path / "own"))
    made = deployment(settings, scheme)
    made.produce(posts(1, COUNT))
    assert made.run(settings, 400)
    made.cluster.log(LOG).trim(5)
    made.produce(posts(4, 20))
    assert made.run(base(str(tmp_path / "of another machine")), 1_000)
    assert len(made.judged()) == COUNT + 20
