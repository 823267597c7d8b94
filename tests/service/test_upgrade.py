"""An older program was killed in the middle of a transaction; this one goes on from what it left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.left_behind import COUNT, golden_scheme, restored
from tests.service.test_changed_settings import CHANGES, MORE, base, changed, posts
from twinsieve.stages.contract import Kind
from twinsieve.stages.scheme import Scheme


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return golden_scheme()


@pytest.mark.parametrize("with_snapshots", [True, False])
@pytest.mark.parametrize("change", [None, *CHANGES])
def test_the_program_goes_on_from_what_an_older_one_left(
    change: str | None, with_snapshots: bool, scheme: Scheme, tmp_path: Path
) -> None:
    world = restored(tmp_path, scheme)
    settings = base(str(tmp_path if with_snapshots else tmp_path / "elsewhere"))
    old = world.judged()
    emitted = len(world.origins("posts.unique")) + len(world.origins("posts.duplicates"))
    assert 0 < emitted < len(old) < COUNT, "judged, not emitted, and not judged yet"
    world.produce(posts(1, MORE))
    assert world.run(changed(settings, change) if change else settings, 1_000)
    assert not [notice for notice in world.notices if "snapshot" in notice], world.notices
    world.check_whole(old, COUNT + MORE)
    kinds = list(world.judged().values())
    if change in (None, "larger window", "lower similarity", "guard off"):
        again = [kind for kind in kinds[COUNT:] if kind is Kind.EXACT]
        assert len(again) > MORE / 2, "copies of what the older program kept"
