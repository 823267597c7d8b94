"""Internal topics that are deleted under a running app, and what is deleted behind shared snapshots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.driver import DECISIONS, INDEX, LOG, VERDICTS, Process, World, texts
from tests.stored import snapshots_at
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.index.snapshot_store import SnapshotReader

TOPICS = {LOG.topic: 1, DECISIONS.topic: 1, VERDICTS: 2}


def settled(**settings: object) -> tuple[World, Process]:
    world = World(partitions=1)
    world.produce("in", 0, texts(0, 30))
    process = world.start("a", **settings)
    world.settle()
    return world, process


def run_until_it_stops(world: World, process: Process) -> float:
    """Seconds until it has stopped."""
    began_s = world.clock.monotonic_s()
    for _ in range(2_000):
        if not process.running:
            break
        world.run(1)
    return world.clock.monotonic_s() - began_s


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", TOPICS)
def test_a_deleted_topic_stops_a_running_app_within_a_check_interval(
    name: str, again: bool, busy: bool
) -> None:
    world, process = settled()
    world.cluster.delete(name)
    if again:
        world.cluster.create(NewTopic(name, TOPICS[name]))
    if busy:
        world.produce("in", 0, texts(30, 60))
    took_s = run_until_it_stops(world, process)
    assert not process.running
    how = "was deleted and created again" if again else "was deleted;"
    # An index that failed meanwhile began anew, and finds no topic.
    assert f"topic {name} {how}" in world.stops[0] or (
        not again and f"{name} does not exist" in world.stops[0]
    )
    # The rounds of a step that waits for nothing to come take a little more.
    assert took_s < INDEX.check_s + 1.0
    assert len(world.emitted()) == len(set(world.emitted()))


def test_a_standby_notices_it_too() -> None:
    world, first = settled()
    second = world.start("b", roles="index")
    world.run(5)
    first.kill()
    world.cluster.delete(VERDICTS)
    run_until_it_stops(world, second)
    assert f"topic {VERDICTS} was deleted" in world.stops[0]


def test_a_broker_that_does_not_know_a_topic_for_a_moment_stops_nothing() -> None:
    world, process = settled()
    for name in TOPICS:
        topic = world.cluster.topics.pop(name)
        world.clock.sleep(INDEX.check_s / 2)
        process.step()
        world.cluster.topics[name] = topic
        world.clock.sleep(INDEX.check_s / 2)
        world.run(3)
    world.produce("in", 0, texts(30, 40))
    world.settle()
    assert not world.stops
    assert world.emitted() == list(range(40))


def test_a_broker_that_is_away_stops_nothing() -> None:
    world, _ = settled()
    world.cluster.reachable = False
    world.clock.sleep(3 * INDEX.check_s)
    world.run(40)
    world.cluster.reachable = True
    world.produce("in", 0, texts(30, 40))
    world.settle()
    assert not world.stops
    assert world.emitted() == list(range(40))


def test_answers_lost_with_their_topic_are_asked_for_again_after_a_restart() -> None:
    world, process = settled()
    world.cluster.delete(VERDICTS)
    world.cluster.create(NewTopic(VERDICTS, 2))
    run_until_it_stops(world, process)
    world.stops.clear()
    world.clock.sleep(20.0)
    world.produce("in", 0, texts(30, 60))
    world.start("a")
    world.settle()
    assert world.emitted() == list(range(60))
    assert not world.stops


def test_log_and_decisions_are_deleted_behind_the_older_snapshot(tmp_path: Path) -> None:
    shared = {
        "snapshots": str(tmp_path),
        "index_config": replace(INDEX, snapshot_every_s=2.0, trim_log=True),
    }
    world = World(partitions=1)
    world.start("a", **shared)
    for first in range(0, 60, 3):
        world.produce("in", 0, texts(first, first + 3))
        world.settle()
        world.clock.sleep(1.0)
    log, decisions = world.cluster.log(LOG), world.cluster.log(DECISIONS)
    kept = list(snapshots_at(str(tmp_path)).read(world.cluster.topics[LOG.topic].topic_id))
    oldest = kept[-1]
    assert isinstance(oldest, SnapshotReader)
    assert log.beginning == oldest.stamp.next_offset > 0
    assert decisions.beginning == oldest.stamp.decisions_from > 0
    world.processes[0].kill()
    world.clock.sleep(20.0)
    # The newest snapshot is gone: the older one, and what is left of both topics, bring everything back.
    max((tmp_path / "app").iterdir()).unlink()
    world.produce("in", 0, texts(0, 70))
    again = world.start("a", **shared)
    world.settle()
    assert not world.stops
    assert again.gaps == 0
    assert world.emitted() == [*range(60), *range(120, 130)], "it knows all that was kept"


def test_decisions_stay_while_another_process_wrote_the_oldest_snapshot(tmp_path: Path) -> None:
    shared = {
        "snapshots": str(tmp_path),
        "index_config": replace(INDEX, snapshot_every_s=2.0, trim_log=True),
    }
    world, first = settled(**shared)
    first.terminate()
    world.clock.sleep(20.0)
    world.start("b", **shared)
    world.run(20)
    before = world.cluster.log(DECISIONS).beginning
    world.clock.sleep(5.0)
    world.produce("in", 0, texts(30, 33))
    world.settle()
    world.run(5)
    assert len(list((tmp_path / "app").iterdir())) == 2
    assert world.cluster.log(DECISIONS).beginning == before
