"""A process that is killed at any step of a snapshot: with the real sieve, nothing is lost, nothing comes out
twice, and every verdict is that of a process that nothing disturbs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.members import MESSAGES, Member, check_folder, run, settings_at, verdicts_undisturbed
from tests.crash.snapshot_steps import TAKEOVER, Killed, SnapshotStep, small_pieces
from tests.memory.broker import CrashError
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import deployment, posts
from twinsieve.stages.contract import Kind
from twinsieve.stages.exact import runs
from twinsieve.stages.judge.scheme import Scheme

pytestmark = pytest.mark.matrix

_LATER = {SnapshotStep.MERGED: 2, SnapshotStep.SEGMENT: 3, SnapshotStep.JOINED: 2}


@pytest.fixture(scope="module")
def unbroken(scheme: Scheme, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Kind]:
    settings = settings_at(str(tmp_path_factory.mktemp("state")), segment=25)
    return verdicts_undisturbed(scheme, settings, MESSAGES)


@pytest.mark.parametrize("then", ["restart", "standby"])
@pytest.mark.parametrize("when", ["at first", "later"])
@pytest.mark.parametrize("step", [step for step in SnapshotStep if step not in TAKEOVER])
def test_a_kill_at_a_step_of_a_snapshot_changes_nothing(
    step: SnapshotStep,
    when: str,
    then: str,
    unbroken: dict[int, Kind],
    scheme: Scheme,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_pieces(monkeypatch)
    # Pieces whose segment lies in a file are not merged.
    segment = 16_000_000 if step is SnapshotStep.MERGED else 25
    # A Bloom generation of an exact window of 80 is full before there are runs to join.
    exact = 800 if step is SnapshotStep.JOINED else 80
    if step is SnapshotStep.JOINED:
        monkeypatch.setattr(runs, "FAN_IN", 3)
    settings = settings_at(str(tmp_path), segment=segment, exact=exact)
    if exact != 80:
        undisturbed = settings_at(str(tmp_path / "undisturbed"), segment=segment, exact=exact)
        unbroken = verdicts_undisturbed(scheme, undisturbed, MESSAGES)
    world = deployment(settings, scheme)
    world.produce(posts(1, MESSAGES))
    killed = Killed(monkeypatch, step, 1 if when == "at first" else _LATER.get(step, 6))
    first = Member(world, settings, "one", hook=killed.check)
    killed.watch(first.index)
    members = [first]
    if then == "standby":
        members.append(Member(world, settings, "two", works=False))
    with pytest.raises(CrashError):
        run(world, *members)
    old = world.judged()
    killed.bury()
    first.kill()
    last = members[-1] if then == "standby" else Member(world, settings, "one")
    workers = [Member(world, settings, "three")] if then == "standby" else []
    run(world, last, *workers)
    for member in (last, *workers):
        member.end()
    world.check_whole(old, MESSAGES)
    assert world.judged() == unbroken
    assert not any("cannot be" in notice or "missing" in notice for notice in world.notices), world.notices
    check_folder(last)
