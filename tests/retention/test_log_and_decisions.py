"""Retention on the fingerprint log and the decisions: the index passes over what it took, counts it and says so;
records that were lost stop it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.test_crash_at_every_step import Trap, crash
from tests.driver import DECISIONS, GROUP, INDEX, INDEX_GROUP, LOG, SCHEME, Process, World, crash_at, texts
from tests.memory.broker import CrashError, MemoryBroker
from tests.stored import hash_sieves, journal_at, snapshots_at
from tests.twins import HashSieve
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Committed, Partition
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.index.follower import Follower
from twinsieve.pipeline.index.history import History
from twinsieve.pipeline.index.ledger import ledger_to_bytes
from twinsieve.pipeline.index.snapshot_store import Snapshot, SnapshotReader
from twinsieve.pipeline.index.snapshot_writer import restore_point
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.wire.chain import UNKNOWN
from twinsieve.pipeline.worker.config import WorkerStep
from twinsieve.stages.errors import StateError

BOTH = (LOG, DECISIONS)
COMMITTING = [step for step in IndexStep if step is not IndexStep.SNAPSHOT_WRITTEN]


def retention(world: World, topics: Collection[Partition], *, keep: int = 0) -> None:
    """All but the newest records of these topics are deleted."""
    for at in topics:
        log = world.cluster.log(at)
        (world.trim_log if at == LOG else log.trim)(log.end - keep)


def judged(count: int = 30, **settings: object) -> World:
    """A world that has emitted `count` messages, a few at a time; snapshots are older than its last decision."""
    world = World(partitions=1)
    world.start("a", **settings)
    for first in range(0, count, 3):
        world.produce("in", 0, texts(first, first + 3))
        world.settle()
        world.clock.sleep(1.0)
    return world


def with_snapshots(folder: Path | None) -> dict[str, object]:
    """Settings of a process whose newest snapshot is some blocks old; None: it takes none."""
    if folder is None:
        return {}
    return {"snapshots": str(folder), "index_config": replace(INDEX, snapshot_every_s=8.0)}


def notices(process: Process) -> list[str]:
    assert process.index is not None
    return process.index.notices


@pytest.mark.parametrize("keep", [0, 5])
@pytest.mark.parametrize("topics", [(LOG,), (DECISIONS,), BOTH])
@pytest.mark.parametrize("snapshots", [False, True])
def test_retention_in_a_quiet_time_stops_no_restart(
    topics: tuple[Partition, ...], keep: int, snapshots: bool, tmp_path: Path
) -> None:
    settings = with_snapshots(tmp_path if snapshots else None)
    world = judged(**settings)
    retention(world, topics, keep=keep)
    world.kill_all()
    world.produce("in", 0, texts(30, 40))
    for number in range(3):
        process = world.start("a", **settings)
        world.settle()
        assert not world.stops
        assert world.emitted() == list(range(40 + 3 * number)), "each came out once"
        assert process.gaps > 0
        assert any("retention deleted" in notice for notice in notices(process))
        retention(world, topics, keep=keep)
        world.kill_all()
        world.produce("in", 0, texts(40 + 3 * number, 43 + 3 * number))


@pytest.mark.parametrize("topics", [(LOG,), (DECISIONS,), BOTH])
@pytest.mark.parametrize("snapshots", [False, True])
def test_each_block_that_retention_took_is_counted_once(
    topics: tuple[Partition, ...], snapshots: bool, tmp_path: Path
) -> None:
    settings = with_snapshots(tmp_path if snapshots else None)
    world = judged(**settings)
    taken = sorted(int(path.name[6:22]) for path in (tmp_path / "app").glob("*.snapshot"))
    # Where the decisions are gone, nothing confirms a snapshot: it is not used.
    known = taken[-1] if taken and topics == (LOG,) else 0
    judged_to = world.cluster.group(INDEX_GROUP).offsets[LOG].offset
    assert known < judged_to
    retention(world, topics)
    world.kill_all()
    process = world.start("a", **settings)
    world.settle()
    world.run(20)
    assert process.gaps == judged_to - known
    said = [
        notice for notice in notices(process) if f"retention deleted {judged_to - known} blocks" in notice
    ]
    assert len(said) == 1


@pytest.mark.parametrize("topics", [(LOG,), BOTH])
def test_blocks_that_retention_took_before_they_were_judged_are_asked_again(
    topics: tuple[Partition, ...],
) -> None:
    world, worker = index_away(topics)
    index = world.start("i", roles="index")
    world.run(80)
    assert index.index is not None
    assert index.index.live
    assert index.index.unjudged > 0
    assert f"retention deleted {index.index.unjudged} blocks before they were judged" in " ".join(
        notices(index)
    )
    assert not worker.running
    world.start("w", roles="worker")
    world.settle()
    assert world.emitted() == list(range(60))
    assert not world.stops


def test_an_index_that_retention_overtakes_while_it_lives_goes_on() -> None:
    """It follows what is committed, and reads no place meanwhile that is gone."""
    world = judged(6)
    (process,) = world.processes
    assert process.index is not None
    assert process.index.live
    log = world.cluster.log(LOG)
    for entry in log.entries[-3:]:
        log.append(replace(entry))
    retention(world, (LOG,))
    world.run(1)
    assert not process.index.live, "it has found its place gone"
    world.produce("in", 0, texts(6, 12))
    world.settle()
    assert process.index.live
    assert world.emitted() == list(range(12))
    assert not world.stops


@pytest.mark.parametrize("kept", [0, 1])
def test_a_follower_goes_on_when_retention_took_unjudged_blocks_it_read(kept: int) -> None:
    world, _ = index_away(())
    follower = following(world)
    waiting = world.cluster.log(LOG).end
    retention(world, (LOG,), keep=kept)
    world.start("a")
    world.settle()
    follow_all(follower)
    assert follower.gaps > 0
    assert follower._state.next_offset == world.cluster.log(LOG).stable_end > waiting
    assert not world.stops


def test_a_follower_stops_where_a_block_is_there_and_its_decision_is_lost() -> None:
    world, _ = index_away(())
    follower = following(world)
    decided = world.cluster.log(DECISIONS).end
    world.start("a")
    world.settle()
    world.cluster.log(DECISIONS).compact(decided)
    with pytest.raises(StateError, match=r"the decision on block \d+ is missing"):
        follow_all(follower)


def test_a_follower_goes_on_where_an_index_that_began_behind_deleted_decisions_passed_blocks_over() -> None:
    """What was deleted was of a transaction that was aborted; the index that began behind it cannot know that."""
    world = World(partitions=1)
    world.produce("in", 0, texts(0, 30))
    dying = world.start("a")
    dying.hook = crash_at(IndexStep.DECIDED, 1)
    world.run(50)
    assert not dying.running
    world.clock.sleep(20.0)
    world.cluster.tick()  # the transaction is given up
    follower = following(world)
    retention(world, (DECISIONS,))
    world.cluster.group(INDEX_GROUP).offsets.clear()
    world.start("b")
    world.settle()
    assert not world.stops
    follow_all(follower)
    assert follower.gaps > 0
    assert follower._state.next_offset == world.cluster.log(LOG).stable_end


def following(world: World) -> Follower:
    """One that holds the blocks which wait for a decision."""
    cluster = world.cluster
    reader, log_id = MemoryBroker(cluster).reader(), cluster.topics[LOG.topic].topic_id
    follower = Follower(reader, IndexState(HashSieve()), INDEX, log_id, 0)
    follower.begin()
    follow_all(follower)
    assert follower._state.next_offset < follower.log_end()
    return follower


def follow_all(follower: Follower) -> None:
    while follower.step(0.0, 1_000):
        pass


def index_away(topics: Collection[Partition]) -> tuple[World, Process]:
    """Workers asked while no index judged, for longer than retention; then they died too."""
    world = World(partitions=1)
    world.produce("in", 0, texts(0, 30))
    worker, index = world.start("w", roles="worker"), world.start("i", roles="index")
    world.settle()
    index.kill()
    world.produce("in", 0, texts(30, 60))
    world.run(100)
    worker.kill()
    world.clock.sleep(20.0)
    retention(world, topics)
    return world, worker


@pytest.mark.parametrize("topics", [(), (LOG,), (DECISIONS,), BOTH])
@pytest.mark.parametrize("step", COMMITTING)
@pytest.mark.parametrize("nth", [1, 2])
def test_an_index_that_dies_on_its_way_back_leaves_one_that_goes_on(
    topics: tuple[Partition, ...], step: IndexStep, nth: int
) -> None:
    world, _ = index_away(topics)
    trap = Trap(step, nth, crash)
    world.start("i", roles="index", hook=trap)
    world.run(150)
    world.start("w", roles="worker")
    world.run(20)
    assert trap.sprung or step is IndexStep.RESTORED, f"{step} was never reached"
    world.kill_all()
    retention(world, topics)
    world.start("i", roles="index")
    worker = world.start("w", roles="worker")
    world.settle()
    assert worker.running
    assert not world.stops
    assert world.emitted() == list(range(60))


def test_a_jump_is_not_committed_before_a_decision_behind_it_is_recorded() -> None:
    world, _ = index_away((LOG,))
    before = world.cluster.group(INDEX_GROUP).offsets[LOG].offset
    world.start("i", roles="index")
    world.run(200)
    assert world.cluster.group(INDEX_GROUP).offsets[LOG].offset == before < world.cluster.log(LOG).beginning
    world.start("w", roles="worker")
    world.settle()
    assert world.cluster.group(INDEX_GROUP).offsets[LOG].offset > world.cluster.log(LOG).beginning


def test_a_jump_that_an_older_version_committed_is_passed_over() -> None:
    world, _ = index_away((LOG,))
    world.cluster.group(INDEX_GROUP).offsets[LOG] = Committed(world.cluster.log(LOG).beginning)
    world.start("i", roles="index")
    world.start("w", roles="worker")
    world.settle()
    assert not world.stops
    assert world.emitted() == list(range(60))


def test_blocks_perhaps_judged_are_not_judged_again_where_no_end_is_known() -> None:
    world = judged()
    world.kill_all()
    retention(world, (DECISIONS,))
    del world.cluster.group(INDEX_GROUP).offsets[LOG]
    world.produce("in", 0, texts(30, 40))
    end = world.cluster.log(LOG).end
    process = world.start("a")
    world.run(1)
    for _ in range(50):
        process.step()
        if process.index is not None and process.index.live:
            break
    assert process.index is not None
    assert process.index.state.next_offset >= end
    world.settle()
    assert world.emitted() == list(range(40))
    assert not world.stops


def lost_tail_of(at: Partition, count: int = 6) -> Callable[[World], None]:
    def lose(world: World) -> None:
        del world.cluster.log(at).entries[-count:]

    return lose


def created_again(at: Partition) -> Callable[[World], None]:
    def create(world: World) -> None:
        offsets = dict(world.cluster.group(INDEX_GROUP).offsets)
        world.cluster.delete(at.topic)
        world.cluster.create(NewTopic(at.topic, 1))
        if at == DECISIONS:
            assert world.cluster.group(INDEX_GROUP).offsets == offsets

    return create


def both(first: Callable[[World], None], second: Callable[[World], None]) -> Callable[[World], None]:
    def do(world: World) -> None:
        first(world)
        second(world)

    return do


def trimmed(topics: Collection[Partition], keep: int = 8) -> Callable[[World], None]:
    return lambda world: retention(world, topics, keep=keep)


LOSSES = {
    "log lost its tail": (lost_tail_of(LOG), "app.fingerprints"),
    "log lost its tail, decisions were trimmed": (
        both(trimmed((DECISIONS,), 0), lost_tail_of(LOG)),
        "app.fingerprints",
    ),
    "both were trimmed, log lost its tail": (both(trimmed(BOTH), lost_tail_of(LOG)), "app.fingerprints"),
    "log was created again": (created_again(LOG), "app.fingerprints"),
    "decisions lost their tail": (lost_tail_of(DECISIONS), "app.decisions"),
    "decisions lost their last record": (lost_tail_of(DECISIONS, 2), "app.decisions"),
    "decisions lost nearly all": (lost_tail_of(DECISIONS, 40), "app.decisions"),
    "decisions were trimmed and lost their tail": (
        both(trimmed((DECISIONS,)), lost_tail_of(DECISIONS)),
        "app.decisions",
    ),
    "decisions were trimmed and lost all that was left": (
        both(trimmed((DECISIONS,)), lost_tail_of(DECISIONS, 8)),
        "app.decisions",
    ),
    "both were trimmed, decisions lost their tail": (
        both(trimmed(BOTH), lost_tail_of(DECISIONS)),
        "app.decisions",
    ),
    "all of the log was trimmed, decisions lost their tail": (
        both(trimmed((LOG,), 0), lost_tail_of(DECISIONS)),
        "app.decisions",
    ),
    "decisions were created again": (created_again(DECISIONS), "app.decisions"),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("snapshots", ["none", "older", "newest"])
def test_lost_records_stop_every_start_and_nothing_is_judged(
    name: str, snapshots: str, tmp_path: Path
) -> None:
    settings = with_snapshots(None if snapshots == "none" else tmp_path)
    world = judged(**settings)
    if snapshots == "newest":
        world.processes[0].terminate()
    world.kill_all()
    lose, topic = LOSSES[name]
    lose(world)
    decided = world.cluster.log(DECISIONS).end
    world.produce("in", 0, texts(30, 40))
    for _ in range(2):
        world.start("i", **{**settings, "roles": "index"})
        world.run(100)
        assert len(world.stops) == 1, "it stops"
        (stop,) = world.stops
        assert topic in stop
        assert "start a new app" in stop
        world.stops.clear()
        world.kill_all()
    assert world.cluster.log(DECISIONS).end == decided
    assert world.emitted() == list(range(30))


def test_retention_before_a_snapshot_does_not_explain_a_loss_behind_it(tmp_path: Path) -> None:
    """A snapshot names an offset below which no decision is needed; some above it may not be needed either."""
    settings = with_snapshots(tmp_path)
    world = judged(**settings)
    world.kill_all()
    store = snapshots_at(str(tmp_path))
    snapshots = store.read(world.cluster.topics[LOG.topic].topic_id)
    found = next(snapshots)
    assert isinstance(found, SnapshotReader)
    sieve, stamp = found.sieve().read(), found.stamp
    start = stamp.decisions_from - 6
    ledger = ledger_to_bytes(found.ledger())
    ids = (stamp.log_id, stamp.decisions_id, stamp.scheme, UNKNOWN)
    store.own.add(stamp.next_offset)
    store.write(Snapshot(stamp.next_offset, start, *ids, ledger, lambda stream: stream.write(sieve)))
    decisions = world.cluster.log(DECISIONS)
    decisions.trim(start + 2)
    del decisions.entries[stamp.decisions_from - decisions.beginning :]
    # As an older version committed: without how far the decisions reach.
    committed = world.cluster.group(INDEX_GROUP).offsets[LOG]
    world.cluster.group(INDEX_GROUP).offsets[LOG] = Committed(committed.offset)
    world.start("a", **settings)
    world.run(100)
    (stop,) = world.stops
    said = f"decisions end at block {stamp.next_offset}, but the app had decided on blocks up to {committed.offset}:"
    assert said in stop


@pytest.mark.parametrize("topics", [(LOG,), (DECISIONS,), BOTH])
def test_a_verdict_without_its_first_record_still_waits_for_its_message(
    topics: tuple[Partition, ...],
) -> None:
    """Two workers died before they emitted; the second one's answers repeat what was judged for the first."""

    def crash(step: str) -> None:
        if step == WorkerStep.BEGUN and emitting:
            raise CrashError("crash")

    world = World(partitions=1)
    index = world.start("i", roles="index")
    world.run(5)
    world.produce("in", 0, texts(0, 20))
    begins = []
    for _ in range(2):
        emitting = False
        worker = world.start("w", roles="worker", hook=crash)
        begins.append((world.cluster.log(LOG).end, world.cluster.log(DECISIONS).end))
        # The first transaction commits the beginning, the next would emit.
        while world.cluster.group(GROUP).offsets.get(Partition("in", 0)) is None:
            world.run(1)
        emitting = True
        world.run(30)
        assert not worker.running
        world.clock.sleep(20.0)
    index.kill()
    world.clock.sleep(20.0)
    for at, place in zip((LOG, DECISIONS), begins[1], strict=True):
        if at in topics:
            (world.trim_log if at == LOG else world.cluster.log(at).trim)(place)
    restored = world.start("i", roles="index")
    world.start("w", roles="worker")
    world.settle()
    assert restored.gaps > 0
    assert world.emitted() == list(range(20))
    assert not world.stops


def test_a_snapshot_of_another_decisions_topic_is_left_alone(tmp_path: Path) -> None:
    world = judged(**with_snapshots(tmp_path))
    world.kill_all()
    store = snapshots_at(str(tmp_path))
    log_id, decisions_id = (world.cluster.topics[at.topic].topic_id for at in (LOG, DECISIONS))
    reader = MemoryBroker(world.cluster).reader()
    history = History(reader, world.clock, LOG, DECISIONS, lambda: None)
    found = {}
    for its_id in (decisions_id, bytes(16)):
        notices: list[str] = []
        restored = restore_point(
            *(store, (log_id, its_id), SCHEME, "", hash_sieves(), 0, notices),
            *(lambda: journal_at(store.storage), history),
        )
        said = any("another decisions topic" in notice for notice in notices)
        found[its_id] = restored.state.next_offset > 0, restored.decisions_from > 0, said
    assert found == {decisions_id: (True, True, False), bytes(16): (False, False, True)}
