"""A program was killed in the middle of a transaction; this one goes on from what it left behind, in this format."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.left_behind import COUNT, golden_scheme, restored
from tests.service.test_changed_settings import CHANGES, MORE, base, changed, posts
from twinsieve.pipeline.wire.frame import VERSION
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.scheme import Scheme


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return golden_scheme()


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_what_an_older_version_left_is_refused_with_what_to_do(
    version: int, scheme: Scheme, tmp_path: Path
) -> None:
    world = restored(version, tmp_path, scheme)
    expected = rf"format version {version}, this program reads {VERSION}.*start a new app and seed it"
    with pytest.raises(StateError, match=expected):
        world.run(base(str(tmp_path)), 100)


def test_a_snapshot_of_an_older_format_is_named_and_the_log_does(scheme: Scheme, tmp_path: Path) -> None:
    world = restored(VERSION, tmp_path, scheme, "older_snapshots")
    old = world.judged()
    assert world.run(base(str(tmp_path)), 1_000)
    expected = "has format version 4, this program reads 7; use the program that wrote it, or delete it if"
    assert any(expected in notice for notice in world.notices), world.notices
    world.check_whole(old, COUNT)


@pytest.mark.parametrize("with_snapshots", [True, False])
@pytest.mark.parametrize("change", [None, *CHANGES])
def test_the_program_goes_on_from_what_another_one_left(
    change: str | None, with_snapshots: bool, scheme: Scheme, tmp_path: Path
) -> None:
    world = restored(VERSION, tmp_path, scheme)
    settings = base(str(tmp_path if with_snapshots else tmp_path / "elsewhere"))
    old = world.judged()
    emitted = len(world.origins("posts.unique")) + len(world.origins("posts.duplicates"))
    assert 0 < emitted < len(old) < COUNT, "judged, not emitted, and not judged yet"
    world.produce(posts(1, MORE))
    assert world.run(changed(settings, change) if change else settings, 1_000)
    assert not [notice for notice in world.notices if "snapshot" in notice], world.notices
    world.check_whole(old, COUNT + MORE)
    kinds = list(world.judged().values())
    if change in (None, "larger window", "lower similarity", "differences off"):
        again = [kind for kind in kinds[COUNT:] if kind is Kind.EXACT]
        assert len(again) > MORE / 2, "copies of what the killed program kept"
