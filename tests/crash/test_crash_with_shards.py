"""A shard or an index that is killed at any step while the index waits for answers: what comes out is what one
process lets out that nothing disturbs, and that has no shards."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.crash.sharded_app import DECISIONS, LOG, App, Came, Judging, files_at_once, settings_in
from tests.crash.test_crash_at_every_step import Trap, crash
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import posts
from tests.shards.conftest import small_pieces
from tests.shards.holding_shards import count_taken
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.index.segment_answers import Unused
from twinsieve.pipeline.shards import shard
from twinsieve.pipeline.shards.config import ShardStep
from twinsieve.stages.judge.scheme import Scheme

__all__ = ["small_pieces"]
pytestmark = pytest.mark.matrix
FIRST, LATER = 110, 72
TRIMMED = 3
"""Blocks that retention deletes."""


def first_posts() -> list[str]:
    """Posts of which some are near duplicates of others."""
    return list(posts(1, FIRST))


def copies() -> list[str]:
    """The last of these again, three times: their leaders are in the window, and most in full segments."""
    return 3 * first_posts()[-LATER // 3 :]


@pytest.fixture(scope="module")
def unbroken(scheme: Scheme, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Came]]:
    """What comes out of one process."""
    app = App(scheme, settings_in(str(tmp_path_factory.mktemp("state")), answers="none"))
    app.judging("one")
    app.world.produce([*first_posts(), *copies()])
    app.run()
    app.end_all()
    return app.out()


@pytest.fixture
def app(scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_pieces: None) -> App:
    files_at_once(monkeypatch)
    return App(scheme, settings_in(str(tmp_path / "state")))


def judge_first(app: App) -> None:
    """The first messages come out; shards answer for all segments that a snapshot names."""
    app.world.produce(first_posts())
    app.run()
    app.turn(8.0)


def check(app: App, unbroken: dict[str, list[Came]]) -> None:
    app.run()
    app.end_all()
    assert app.out() == unbroken
    assert not app.stops
    assert not app.unused_answers()[Unused.DIFFERS]


class Armed(Trap):
    """A trap that catches nothing before it is armed."""

    armed = False

    def __call__(self, step: str) -> None:
        if self.armed:
            super().__call__(step)


@pytest.mark.parametrize("then", ["alone", "other", pytest.param("restart", marks=pytest.mark.minutes)])
@pytest.mark.parametrize("step", ShardStep)
def test_a_shard_that_is_killed_changes_nothing(
    step: ShardStep, then: str, unbroken: dict[str, list[Came]], app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = count_taken(monkeypatch)
    trap = Armed(step, 1, crash)
    index = app.judging("one")
    app.shard("a", hook=trap)
    if then == "other":
        app.shard("b")
    judge_first(app)
    if step is ShardStep.MADE:
        app.kill("a")
        app.shard("a", hook=trap)
    assert index.index.answers is not None
    assert any(map(index.index.answers.waits.is_answered, index.index._sealed)), (
        "some segments are answered for"
    )
    app.world.produce(copies())
    trap.armed = True
    app.run(lambda: trap.sprung)
    assert "a" not in app.members
    before, began_s = taken[0], app.world.clock.monotonic_s()
    app.run(lambda: index.waits or app.world.done())
    assert index.waits, "it waits for the dead"
    if then == "restart":
        app.shard("a")
    check(app, unbroken)
    if then == "alone":
        assert app.world.clock.monotonic_s() - began_s >= 0.5
    else:
        assert taken[0] > before, "somebody answers again"


@pytest.mark.parametrize("then", ["restart", pytest.param("standby", marks=pytest.mark.minutes)])
@pytest.mark.parametrize("step", IndexStep)
def test_an_index_that_is_killed_changes_nothing(
    step: IndexStep, then: str, unbroken: dict[str, list[Came]], app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, waiting = count_taken(monkeypatch), list[int]()
    # Some blocks are answered while later ones wait.
    monkeypatch.setattr(shard, "_POLLED", 3)

    def note_and_crash() -> None:
        waiting.append(len(index.index._held))
        crash()

    trap = Armed(step, 1, note_and_crash)
    index = app.judging("one", hook=trap)
    app.shard("a")
    judge_first(app)
    if then == "standby":
        app.judging("two", works=False)
        app.turn(2.0)
    if step is IndexStep.RESTORED:
        app.kill("one")
        index = app.judging("one", hook=trap)
    app.world.produce(copies())
    if step is not IndexStep.RESTORED:
        assert index.worker is not None
        for _ in range(LATER // 9):
            index.worker.step(0.05)
        app.run(lambda: index.waits)
    trap.armed = True
    app.run(lambda: trap.sprung)
    assert "one" not in app.members
    assert waiting[0] or step in (IndexStep.RESTORED, IndexStep.SNAPSHOT_WRITTEN)
    before = taken[0]
    app.judging("worker" if then == "standby" else "one")
    check(app, unbroken)
    # By then all blocks are judged.
    assert taken[0] > before or step is IndexStep.SNAPSHOT_WRITTEN, "the next index uses answers"


def judge_with_an_empty_standby(app: App, folder: Path, *, has_shard: bool) -> None:
    """Retention takes the first blocks; an index that sees no snapshot follows from there, and takes over."""
    app.judging("one")
    if has_shard:
        app.shard("a")
    judge_first(app)
    log, decisions = app.world.cluster.log(LOG), app.world.cluster.log(DECISIONS)
    assert log.beginning == decisions.beginning == 0
    (first, *_) = [at for at, offset in app.log_offsets().items() if offset == TRIMMED]
    log.trim(TRIMMED)
    decisions.trim(first)
    folder.rename(folder.with_name("away"))
    app.judging("two", works=False)
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name("away").rename(folder)
    app.turn(3.0)
    app.kill("one")
    app.judging("worker")
    app.world.produce(posts(2, LATER))
    app.run()
    app.turn(8.0)
    app.world.produce(posts(3, LATER))
    app.run()


def test_an_index_that_began_empty_takes_no_answer_for_segments_of_the_one_before(
    app: App, scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kept messages have other numbers: the same range of them is another segment."""
    taken = count_taken(monkeypatch)
    judge_with_an_empty_standby(app, tmp_path / "state", has_shard=True)
    two = app.members["two"]
    assert isinstance(two, Judging)
    assert two.index.live
    assert app.unused_answers()[Unused.UNFIT]
    alone = App(scheme, settings_in(str(tmp_path / "alone"), answers="none"))
    before = taken[0]
    judge_with_an_empty_standby(alone, tmp_path / "alone", has_shard=False)
    assert taken[0] == before
    assert app.out() == alone.out()
    assert not app.unused_answers()[Unused.DIFFERS]
    app.end_all()
    alone.end_all()
