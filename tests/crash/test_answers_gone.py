"""The topic of the answers is gone, is another one, or closed to the app, while processes run or before they start: a
cache. No process ends or restores, what comes out is what comes out without shards, and it is used again afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.sharded_app import ANSWERS, App, Judging, files_at_once, settings_in
from tests.crash.test_crash_with_shards import copies, judge_first
from tests.crash.test_shards_without import check_equal, more
from tests.memory.broker import MemoryCluster
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import posts
from tests.shards.conftest import small_pieces
from tests.shards.holding_shards import count_taken
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.stages.judge.scheme import Scheme

__all__ = ["small_pieces"]
pytestmark = pytest.mark.matrix
NOTICED_S = 6.0
"""Longer than the time between two looks at the topic."""


@dataclass(frozen=True)
class Case:
    """Something that happens to the topic. is_told: whether the index can know"""

    happens: Callable[[MemoryCluster], object]
    mend: Callable[[MemoryCluster], object]
    is_told: bool = True


def made(partitions: int, **settings: str) -> Callable[[MemoryCluster], object]:
    return lambda cluster: cluster.create(NewTopic(ANSWERS, partitions, settings=settings))


def gone(cluster: MemoryCluster) -> None:
    cluster.delete(ANSWERS)


def another(partitions: int) -> Callable[[MemoryCluster], object]:
    def happens(cluster: MemoryCluster) -> None:
        cluster.delete(ANSWERS)
        made(partitions)(cluster)

    return happens


def nothing(_: MemoryCluster) -> None:
    pass


CASES = {
    "deleted": Case(gone, made(4)),
    "deleted, and made again with fewer partitions": Case(another(1), nothing, is_told=False),
    "deleted, and made again with more partitions": Case(another(9), nothing, is_told=False),
    "not readable": Case(
        lambda cluster: cluster.faults.denied.add(ANSWERS), lambda cluster: cluster.faults.denied.clear()
    ),
    "not described": Case(
        lambda cluster: cluster.faults.hidden.add(ANSWERS), lambda cluster: cluster.faults.hidden.clear()
    ),
    "too small": Case(
        lambda cluster: cluster.topics[ANSWERS].settings.update({"max.message.bytes": "100"}),
        lambda cluster: cluster.topics[ANSWERS].settings.clear(),
        is_told=False,
    ),
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, small_pieces: None) -> None:
    files_at_once(monkeypatch)


def problem_of(index: Judging) -> str:
    assert index.index.answers_topic is not None
    return index.index.answers_topic.problem


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_under_load_nobody_ends_and_it_is_used_again(
    case: Case, scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = count_taken(monkeypatch)
    app = App(scheme, settings_in(str(tmp_path / "state")))
    index = app.judging("one")
    app.judging("two", works=False)
    app.shard("a")
    members = dict(app.members)
    judge_first(app)
    cluster = app.world.cluster
    case.happens(cluster)
    app.world.produce(copies())
    app.run()
    app.turn(NOTICED_S)
    assert bool(problem_of(index)) == case.is_told
    more(app, list(posts(2, 40)))
    case.mend(cluster)
    app.turn(30.0)
    assert not problem_of(index)
    before = taken[0]
    more(app, copies())
    assert app.members == members
    assert taken[0] > before, "shards answer again"
    check_equal(app, tmp_path / "alone", copies(), list(posts(2, 40)), copies())


@pytest.mark.parametrize("name", ["deleted", "not readable", "not described"])
def test_at_a_start_the_index_judges_and_shards_wait_for_it(
    name: str, scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = count_taken(monkeypatch)
    case = CASES[name]
    app = App(scheme, settings_in(str(tmp_path / "state")))
    case.happens(app.world.cluster)
    index = app.judging("one")
    shard = app.shard("a")
    judge_first(app)
    assert problem_of(index)
    assert shard.shard is None, "it waits"
    case.mend(app.world.cluster)
    app.turn(30.0)
    more(app, copies())
    assert taken[0]
    assert list(app.members) == ["one", "a"]
    check_equal(app, tmp_path / "alone", copies())


def test_rights_that_are_withdrawn_between_two_looks_end_no_shard(scheme: Scheme, tmp_path: Path) -> None:
    """Its loop ends the process for a right that is missing while it starts."""
    app = App(scheme, settings_in(str(tmp_path / "state")))
    app.judging("one")
    shard = app.shard("a")
    judge_first(app)
    app.world.cluster.faults.denied.add(ANSWERS)
    errors = []
    held = shard.shard
    assert held is not None
    for _ in range(100):
        try:
            held.step(0.05)
        except Exception as error:  # noqa: BLE001
            errors.append(error)
            break
    assert [getattr(error, "lasting", None) for error in errors] == [False]
    app.end_all()
