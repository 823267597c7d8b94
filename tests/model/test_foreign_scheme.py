"""A process with other settings asks the app's index: it is refused, and nobody else notices."""

from __future__ import annotations

from dataclasses import replace

from tests.driver import INDEX, LOG, OUTPUT, WORKER, World
from twinsieve.pipeline.wire.frame import scheme_hash

OTHER = scheme_hash("another")


def _emitted(world: World) -> list[bytes | None]:
    logs = world.cluster.topics[OUTPUT].logs
    return [entry.value for log in logs for _, entry in log.visible()]


def test_a_foreign_worker_stops_and_the_index_and_its_successors_go_on() -> None:
    world = World(partitions=2)
    world.produce("in", 0, [b"a", b"b"])
    world.start("a")
    world.settle()
    stranger = world.start("b", roles="worker", worker_config=replace(WORKER, scheme=OTHER))
    world.produce("in", 0, [b"c"])
    world.produce("in", 1, [b"d"])
    world.settle(tend=lambda: None)
    assert not stranger.running
    assert any("fingerprint scheme is" in stop and "restore profile, text" in stop for stop in world.stops)
    index = world.processes[0].index
    assert index is not None
    assert any("the process that wrote it is refused" in notice for notice in index.notices)
    world.kill_all()
    world.produce("in", 1, [b"a", b"e"])
    heir = world.start("c")
    world.settle()
    assert heir.running
    assert sorted(filter(None, _emitted(world))) == [b"a", b"b", b"c", b"d", b"e"]


def test_a_foreign_standby_ends_itself_alone() -> None:
    world = World(partitions=1)
    world.produce("in", 0, [b"a"])
    world.start("a")
    world.settle()
    stranger = world.start("b", roles="index", index_config=replace(INDEX, scheme=OTHER))
    world.run(50)
    assert not stranger.running
    assert f"{LOG.topic.replace('fingerprints', 'decisions')}" in world.stops[0]
    world.produce("in", 0, [b"a", b"b"])
    world.settle()
    assert sorted(filter(None, _emitted(world))) == [b"a", b"b"]
