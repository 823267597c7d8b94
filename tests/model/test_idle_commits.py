"""What an idle or stopping worker commits and reports takes nothing away from what is on record."""

from __future__ import annotations

from dataclasses import replace

from tests.driver import GROUP, LOG, VERDICTS, WORKER, World, texts
from tests.memory.broker import CrashError
from tests.memory.faults import at_once
from tests.model.checker import check_settled
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.worker.config import COMMIT_AGAIN_S, WorkerStep

IN = Partition("in", 0)
RECORD = Names.emitted(GROUP)


def test_the_mark_outlives_a_session_whose_first_block_never_arrived() -> None:
    """The mark alone says what came out: no block did. An operator moves the offset back, and the block that
    would tell the index is lost while the worker commits its offset again and again."""
    emitting = False

    def crash(step: str) -> None:
        if step == WorkerStep.COMMITTED and emitting:
            raise CrashError("crash")

    world = World(partitions=1)
    world.start("i", roles="index")
    first = world.start("w", roles="worker", hook=crash)
    world.settle()
    emitting = True
    world.produce("in", 0, texts(0, 5))
    world.run(30)
    assert not first.running
    assert world.emitted() == list(range(5))
    world.clock.sleep(20.0)
    world.move_offset(IN, 0)
    world.cluster.faults.append_latency_s = lambda: 60.0
    second = world.start("w", roles="worker")
    before = world.cluster.group(GROUP).offsets[IN]
    commits = 0

    def count(step: str) -> None:
        nonlocal commits
        commits += step == "transactor.commit.after"

    second.hook = count
    world.run(40)
    world.clock.sleep(3.0)
    world.run(2)
    second.kill(lambda _: 0)
    assert world.cluster.group(GROUP).offsets[IN] == before, f"after {commits} commits"
    world.cluster.faults.append_latency_s = at_once
    world.clock.sleep(20.0)
    world.start("w", roles="worker")
    check_settled(world)
    assert world.emitted() == list(range(5)), "each came out once"


def test_a_worker_that_stops_while_it_begins_reports_only_what_it_asked() -> None:
    """One session has its first answer and would go on; the stop waits for that of the other."""
    world = World(partitions=2)
    world.produce("in", 0, texts(0, 30))
    world.start("i", roles="index")
    world.run(5)
    worker = world.start("w", roles="worker")
    while world.cluster.log(LOG).end < 2:
        worker.step()
    world.cluster.faults.leaderless.add(Partition(VERDICTS, 1))
    worker.terminate()
    world.cluster.faults.leaderless.clear()
    world.clock.sleep(20.0)
    world.start("w", roles="worker")
    check_settled(world)
    assert world.emitted() == list(range(30))


def test_records_from_before_a_session_begin_a_new_one() -> None:
    """As a client reads that has lost its position."""
    world = World(partitions=1)
    process = world.start("a")
    world.produce("in", 0, texts(0, 20))
    world.settle()
    assert process.worker is not None
    process.worker._consumer.seek(IN, 5)
    world.produce("in", 0, texts(20, 30))
    check_settled(world)
    assert any(
        "in[0]: received offset 5 again, although offsets below 20 were" in notice
        for notice in process.notices
    ), process.notices
    assert world.emitted() == list(range(30))


def test_the_record_of_a_quiet_partition_does_not_expire_beside_a_busy_one() -> None:
    """Kafka forgets each offset of a group without members by its own age."""
    world = World(partitions=2)
    world.start("a", worker_config=replace(WORKER, check_s=500.0))
    world.produce("in", 0, texts(0, 5))
    world.settle()
    records = world.cluster.group(RECORD).offsets
    before = records[IN]
    world.cluster.offsets_retention_s = 3 * COMMIT_AGAIN_S
    until_s = world.clock.monotonic_s() + 4 * COMMIT_AGAIN_S
    while world.clock.monotonic_s() < until_s:
        # Shorter than `check_s`, and nobody loses its membership.
        for group in world.cluster.groups.values():
            for member in group.members.values():
                member.seen_s += 300.0
        world.clock.sleep(300.0)
        world.produce("in", 1, texts(6, 7))
        world.run(20)
    assert records[IN] == before
