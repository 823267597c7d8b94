"""A program was killed in the middle of a transaction; this one goes on from what it left behind, in any format."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.left_behind import COUNT, file_of, golden_scheme, restored
from tests.service.test_changed_settings import CHANGES, MORE, Deployment, base, changed, posts
from twinsieve.pipeline.wire.frame import OLDEST_VERSION, VERSION, version_of
from twinsieve.stages.contract import Kind
from twinsieve.stages.judge.scheme import Scheme


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return golden_scheme()


VERSIONS = range(OLDEST_VERSION, VERSION + 1)


def versions_in(world: Deployment, folder: Path) -> set[int]:
    """Format versions of all blocks, decisions, answers and snapshots that were left."""
    topics = (name for name in world.cluster.topics if name.startswith("t."))
    entries = (entry for name in topics for log in world.cluster.topics[name].logs for entry in log.entries)
    records = {version_of(entry.value) for entry in entries if entry.value}
    return records | {int.from_bytes(path.read_bytes()[4:6], "little") for path in (folder / "t").iterdir()}


@pytest.mark.parametrize("version", VERSIONS)
def test_there_is_a_file_of_every_version_that_is_read(version: int, scheme: Scheme, tmp_path: Path) -> None:
    assert file_of(version).exists(), (
        "write it before the version is raised: python -m tests.golden.left_behind"
    )
    assert versions_in(restored(version, tmp_path, scheme), tmp_path) == {version}


@pytest.mark.parametrize("with_snapshots", [True, False])
@pytest.mark.parametrize("change", [None, *CHANGES])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_program_goes_on_from_what_another_one_left(
    version: int, change: str | None, with_snapshots: bool, scheme: Scheme, tmp_path: Path
) -> None:
    world = restored(version, tmp_path, scheme)
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
        assert len(again) > MORE / 2, "copies of what the killed program kept"
