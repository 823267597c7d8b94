"""An input topic that is deleted for good, or that nobody reads any more, leads nobody with what never came out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.driver import DUPLICATES, GROUP, INDEX, OUTPUT, SEEDED, WORKER, Process, World
from tests.memory.clients import MemoryAdmin
from tests.model.checker import check_settled
from tests.nasty.seeding import SEED_WORKER
from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.records import BrokerError, Partition
from twinsieve.pipeline.index.ledger import GivenUp

BOTH, ONE = replace(WORKER, topics=("in", "in2")), replace(WORKER, topics=("in",))
LONG_S = INDEX.unread_s + 6 * INDEX.inputs_s


def judged_not_emitted() -> World:
    """Two messages of in2 were judged, and every process was killed before they came out."""
    world = World(partitions=1, topics=("in", "in2"))
    worker = world.start("w", roles="worker", worker_config=BOTH)
    index = world.start("i", roles="index")
    world.produce("in", 0, [b"first"])
    world.settle()
    world.produce("in2", 0, [b"x", b"y"])
    for process in (worker, worker, index, index):
        process.step()
    world.kill_all()
    assert index.index is not None
    assert index.index.state.ledger.waiting()
    return world


def leave_out(world: World, how: str) -> None:
    """in2 is deleted, or taken out of `input.topics`."""
    if how == "deleted":
        world.delete("in2")
    else:
        world.take_out("in2")


def pass_time(world: World, seconds: float) -> None:
    """All at work, and nothing arrives."""
    until_s = world.clock.monotonic_s() + seconds
    while world.clock.monotonic_s() < until_s:
        world.run(1)


def out(world: World) -> list[bytes | None]:
    return world.cluster.values(OUTPUT)


def given_up(world: World) -> Counter[GivenUp]:
    return sum((each.index.given_up for each in world.processes if each.index is not None), Counter())


def test_a_stranger_in_the_group_reads_nothing_for_the_app() -> None:
    world = judged_not_emitted()
    leave_out(world, "left out")
    world.start("a", worker_config=ONE)
    world.cluster.group(GROUP).join(("in2",), None, 1e9)
    pass_time(world, LONG_S)
    world.produce("in", 0, [b"x"])
    world.settle()
    assert given_up(world) == {GivenUp.GONE: 2}
    assert out(world) == [b"first", b"x"]


@pytest.mark.parametrize("how", ["deleted", "left out"])
@pytest.mark.parametrize("restores", ["no", "from the log", "from a snapshot"])
def test_copies_of_what_never_came_out_come_out(how: str, restores: str, tmp_path: Path) -> None:
    world = judged_not_emitted()
    leave_out(world, how)
    kept = str(tmp_path) if restores == "from a snapshot" else None
    world.start("a", worker_config=ONE, snapshots=kept)
    pass_time(world, LONG_S)
    world.produce("in", 0, [b"other"])
    world.settle()
    assert given_up(world) == {GivenUp.GONE: 2}
    pass_time(world, LONG_S)
    world.produce("in", 0, [b"more"])
    world.settle()
    assert given_up(world) == {GivenUp.GONE: 2}, "once"
    if restores != "no":
        world.kill_all()
        world.start("b", worker_config=ONE, snapshots=kept)
    world.produce("in", 0, [b"x", b"x", b"y"])
    world.settle()
    assert out(world) == [b"first", b"other", b"more", b"x", b"y"]
    check_settled(world, in_order=False)


def test_a_topic_that_is_read_again_later_is_judged_anew() -> None:
    world = judged_not_emitted()
    leave_out(world, "left out")
    world.start("a", worker_config=ONE)
    pass_time(world, LONG_S)
    world.produce("in", 0, [b"x"])
    world.settle()
    world.kill_all()
    world.take_in("in2")
    world.start("a", worker_config=BOTH)
    world.settle()
    assert out(world) == [b"first", b"x", b"y"]
    assert world.cluster.values(DUPLICATES) == [b"x"]
    check_settled(world, in_order=False)


def test_a_topic_that_comes_back_before_anything_was_judged_loses_no_leader() -> None:
    """The index found it unread; then its own block is the first."""
    world = judged_not_emitted()
    world.start("a", worker_config=ONE, static=False)
    pass_time(world, LONG_S)
    world.start("b", roles="worker", worker_config=BOTH, static=False)
    world.settle()
    assert given_up(world) == {}
    assert out(world) == [b"first", b"x", b"y"]
    check_settled(world, in_order=False)


def test_nothing_is_given_up_while_no_worker_runs() -> None:
    world = judged_not_emitted()
    world.start("i", roles="index")
    other = world.start("v", roles="worker", worker_config=ONE)
    pass_time(world, 4 * INDEX.inputs_s)
    other.kill()
    pass_time(world, 3 * LONG_S)
    world.produce("in", 0, [b"x"])
    world.start("w", roles="worker", worker_config=BOTH)
    world.settle()
    assert given_up(world) == {}
    assert world.cluster.values(DUPLICATES) == [b"x"]
    assert out(world) == [b"first", b"x", b"y"]
    check_settled(world, in_order=False)


def test_a_topic_that_another_process_reads_is_not_given_up() -> None:
    """Processes may read different topics; one that waits for a leader has its share all the same."""
    world = judged_not_emitted()
    world.cluster.faults.leaderless.add(Partition("in2", 0))
    world.start("a", worker_config=ONE, static=False)
    world.start("b", roles="worker", worker_config=replace(WORKER, topics=("in2",)), static=False)
    world.run(50)
    pass_time(world, LONG_S)
    world.produce("in", 0, [b"other"])
    pass_time(world, 10)
    assert out(world) == [b"first", b"other"]
    world.cluster.faults.leaderless.clear()
    world.settle()
    assert given_up(world) == {}
    assert out(world) == [b"first", b"other", b"x", b"y"]
    check_settled(world, in_order=False)


def test_what_a_stopped_seed_was_judged_leads_on() -> None:
    """It was read from an output, so it is out already."""
    world = World(partitions=1, topics=("in", SEEDED))
    world.produce(SEEDED, 0, [b"x", b"y"])
    seed = world.start("s", job="seed", roles="worker", worker_config=SEED_WORKER)
    index = world.start("i", roles="index")
    for process in (seed, index, seed, index):
        world.run(3) if process is seed else None
        process.step()
    world.produce(SEEDED, 0, [b"z"])
    for process in (seed, seed, index, index):
        process.step()
    assert index.index is not None
    assert index.index.state.ledger.waiting(), "the seed was killed before it had heard of it"
    world.kill_all()
    world.topic_ids.pop(SEEDED)
    world.start("a", worker_config=ONE)
    pass_time(world, LONG_S)
    world.produce("in", 0, [b"z", b"new"])
    world.settle()
    assert given_up(world) == {}
    assert out(world) == [b"new"]


def deny(monkeypatch: pytest.MonkeyPatch, question: str, about: object) -> None:
    """The broker allows everything but this question."""
    asked = getattr(MemoryAdmin, question)

    def ask(admin: MemoryAdmin, what: object, **options: bool) -> object:
        if what == about:
            raise BrokerError(f"{what}: no permission", retryable=False)
        return asked(admin, what, **options)

    monkeypatch.setattr(MemoryAdmin, question, ask)


def test_who_may_not_ask_for_the_group_gives_nothing_up_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = judged_not_emitted()
    leave_out(world, "left out")
    process = world.start("a", worker_config=ONE)
    with monkeypatch.context() as patch:
        deny(patch, "members", GROUP)
        pass_time(world, 2 * LONG_S)
        world.produce("in", 0, [b"x"])
        world.settle()
    assert given_up(world) == {}
    assert len([line for line in notices(process) if "no permission" in line]) == 1
    pass_time(world, LONG_S)
    world.produce("in", 0, [b"other", b"x"])
    world.settle()
    assert given_up(world) == {GivenUp.GONE: 2}
    assert any("input topic in2" in line for line in notices(process))


def test_the_group_tells_who_may_not_ask_for_a_topic_that_it_is_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = judged_not_emitted()
    leave_out(world, "deleted")
    process = world.start("a", worker_config=ONE)
    deny(monkeypatch, "topics", ["in2"])
    pass_time(world, LONG_S)
    world.produce("in", 0, [b"x"])
    world.settle()
    assert given_up(world) == {GivenUp.GONE: 2}
    assert len([line for line in notices(process) if "no permission" in line]) == 1


def notices(process: Process) -> list[str]:
    assert process.index is not None
    return process.index.notices


@pytest.mark.parametrize("failure", ["not known", "no answer"])
def test_a_broker_that_knows_nothing_for_a_moment_gives_nothing_up(
    failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = judged_not_emitted()
    world.start("i", roles="index")
    plain, bad, looks = MemoryAdmin.topics, True, 0

    def topics(
        admin: MemoryAdmin, names: list[str], *, settings: bool = False
    ) -> dict[str, TopicInfo | None]:
        nonlocal bad, looks
        if names != ["in2"]:
            return plain(admin, names, settings=settings)
        bad, looks = not bad, looks + 1
        if bad and failure == "no answer":
            raise BrokerError("the broker is away", retryable=True)
        return {"in2": None} if bad else plain(admin, names, settings=settings)

    monkeypatch.setattr(MemoryAdmin, "topics", topics)
    other = world.start("v", roles="worker", worker_config=ONE)
    for _ in range(60):
        if looks < 6:
            world.produce("in", 0, [b"x"])
            world.clock.sleep(1.0)
            world.run(3)
    assert looks == 6
    other.kill()
    monkeypatch.undo()
    world.start("w", roles="worker", worker_config=BOTH)
    world.settle()
    assert given_up(world) == {}
    assert out(world) == [b"first", b"x", b"y"]
    check_settled(world, in_order=False)
