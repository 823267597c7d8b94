"""A partition without a leader delays only the input partitions that need it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import (
    DEAD,
    DUPLICATES,
    GROUP,
    INDEX,
    LOG,
    OUTPUT,
    VERDICTS,
    WORKER,
    Process,
    World,
    origin_of,
)
from tests.memory.clients import MemoryReader, MemoryTransactionalProducer
from tests.memory.partitioner import partition_of
from tests.model.checker import check_settled
from tests.model.test_inputs_gone import pass_time
from twinsieve.pipeline.broker.records import AbortableError, Messages, Partition
from twinsieve.pipeline.worker.config import WorkerStep
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.pipeline.worker.waiting import WaitReason

DEAD_INPUT = Partition("in", 2)


def patient_world(partitions: int = 3, outputs: int = 3) -> World:
    """Nothing expires: a client that waits for a leader lets the clock of all run."""
    world = World(partitions, other=dict.fromkeys((OUTPUT, DUPLICATES, DEAD), outputs))
    world.cluster.session_timeout_s = world.cluster.transaction_timeout_s = 1e9
    return world


def post(world: World, first: int, count: int = 10) -> None:
    for number in range(3):
        world.produce("in", number, [b"%d %d" % (number, row) for row in range(first, first + count)])


def out(world: World) -> list[int]:
    """Messages that came out, by partition."""
    return [len(world.cluster.values(OUTPUT, number)) for number in range(3)]


def for_leaders(process: Process) -> int:
    """Number of partitions that wait for a leader."""
    assert process.worker is not None
    return sum(wait.reason is WaitReason.LEADER for wait in process.worker.waits.of.values())


def settled_well(world: World) -> None:
    """All leaders are back: nothing is lost, nothing comes twice."""
    world.cluster.faults.leaderless.clear()
    check_settled(world)


def test_an_input_partition_without_a_leader_keeps_no_other_from_opening() -> None:
    world = patient_world()
    world.cluster.faults.leaderless.add(DEAD_INPUT)
    post(world, 0)
    process = world.start("a")
    pass_time(world, 10.0)
    assert out(world) == [10, 10, 0]
    assert process.worker is not None
    assert process.worker.ready
    assert {part: wait.reason for part, wait in process.worker.waits.of.items()} == {
        DEAD_INPUT: WaitReason.LEADER
    }
    assert "in[2]: no leader; work that needs it waits until it has one" in process.notices
    settled_well(world)
    assert not process.worker.waits.of


def test_offsets_that_nobody_tells_keep_no_other_partition_from_opening(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The topic's description names a leader, but questions about the offsets have no answer."""
    silent = {DEAD_INPUT}
    for name in ("beginning_offsets", "end_offsets"):
        ask = getattr(MemoryReader, name)

        def asked(self: MemoryReader, partitions: set[Partition], ask: object = ask) -> object:
            if silent & set(partitions):
                self._cluster.clock.sleep(10.0)
                raise AbortableError(f"offsets of {partitions}: no answer")
            return ask(self, partitions)  # type: ignore[operator]

        monkeypatch.setattr(MemoryReader, name, asked)
    world = patient_world()
    post(world, 0)
    world.start("a")
    pass_time(world, 40.0)
    assert out(world) == [10, 10, 0]
    silent.clear()
    settled_well(world)


def test_a_leaderless_verdict_partition_delays_those_answered_there() -> None:
    world = patient_world()
    process = world.start("a")
    world.run(20)
    world.cluster.faults.leaderless.add(Partition(VERDICTS, 0))
    for first in range(0, 50, 10):
        post(world, first)
        pass_time(world, 30.0)
    assert out(world)[1] == 50, "in[1] is answered on the other partition"
    assert process.index is not None
    assert process.index.live
    assert for_leaders(process) == 2
    settled_well(world)


def test_a_log_without_a_leader_is_said_and_waited_for() -> None:
    world = patient_world()
    process = world.start("a")
    world.run(20)
    world.cluster.faults.leaderless.add(LOG)
    post(world, 0)
    pass_time(world, 120.0)
    assert out(world) == [0, 0, 0]
    assert any("app.fingerprints[0]: no leader" in notice for notice in process.notices)
    assert process.running
    settled_well(world)


def test_blocks_are_not_asked_again_and_again_while_verdicts_have_no_leader() -> None:
    world = patient_world()
    config = replace(WORKER, max_pending=500, poll_messages=100, block_bytes=100_000)
    world.start("a", worker_config=config)
    world.run(20)
    world.cluster.faults.leaderless.add(Partition(VERDICTS, 0))
    post(world, 0)
    pass_time(world, 200.0)
    before = world.cluster.log(LOG).end
    pass_time(world, 600.0)
    assert world.cluster.log(LOG).end - before < 60, "idle reports of one partition alone"
    settled_well(world)


@pytest.mark.parametrize("expires", [True, False])
@pytest.mark.parametrize("topic", [OUTPUT, DUPLICATES, DEAD])
def test_a_leaderless_output_partition_delays_those_that_write_there(topic: str, *, expires: bool) -> None:
    """expires: the first transaction, whose messages wait for a leader, outlives its time-out"""
    world = patient_world()
    world.cluster.transaction_timeout_s = 8.0 if expires else 1e9
    process = world.start("a")
    post(world, 0)
    world.settle()
    world.cluster.faults.leaderless.add(Partition(topic, 1))
    for first in range(0, 60, 10):
        for number in range(3):
            world.produce("in", number, [b"\xff", b"%d 0" % number])
        post(world, 1_000 + first)
        pass_time(world, 30.0)
    assert out(world) == [70, 10, 70]
    assert for_leaders(process) == 1
    settled_well(world)


def test_keys_of_a_dead_output_partition_wait_and_keyless_messages_pass() -> None:
    world = patient_world(outputs=4)
    dead_key, live_key = b"key-1", b"a longer key"
    world.cluster.faults.leaderless.add(Partition(OUTPUT, partition_of(dead_key, 4)))
    assert partition_of(live_key, 4) != partition_of(dead_key, 4)
    world.start("a")
    for row in range(20):
        world.produce("in", 0, [b"0 %d" % row], live_key)
        world.produce("in", 1, [b"1 %d" % row], dead_key if row == 10 else live_key)
        world.produce("in", 2, [b"2 %d" % row], None)
        world.run(2)
    pass_time(world, 60.0)
    came = [origin_of(entry) for log in world.cluster.topics[OUTPUT].logs for _, entry in log.visible()]
    assert [sum(number == each for _, number, _ in came) for each in range(3)] == [20, 10, 20]
    settled_well(world)


def test_a_partition_whose_transactions_are_refused_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its output partition has a leader, which takes nothing: too few replicas are in sync, say."""
    world = patient_world()
    refusals: list[float] = []
    send = MemoryTransactionalProducer.send

    def refuse(
        self: MemoryTransactionalProducer, topic: str, partition: int | None, messages: Messages
    ) -> None:
        if (topic, partition) == (OUTPUT, 1) and refusing:
            refusals.append(world.clock.monotonic_s())
            raise AbortableError("out[1]: not enough replicas")
        send(self, topic, partition, messages)

    monkeypatch.setattr(MemoryTransactionalProducer, "send", refuse)
    refusing = True
    world.start("a")
    for first in range(0, 300, 10):
        post(world, first)
        pass_time(world, 10.0)
    assert out(world) == [300, 0, 300]
    assert 5 < len(refusals) < 20
    before = world.cluster.log(LOG).end
    pass_time(world, 300.0)
    assert world.cluster.log(LOG).end - before < 60, "copies of what waits come ever less often"
    refusing = False
    settled_well(world)


def test_messages_are_counted_once_when_a_step_fails_behind_its_commit() -> None:
    world = World(partitions=1)
    process = world.start("a", worker_config=replace(WORKER, report_s=0.0))
    world.run(10)
    worker = process.worker
    assert worker is not None
    counted, step, failing = [0], worker.step, [3]

    def count(timeout_s: float) -> Emission:
        emission = step(timeout_s)
        counted[0] += sum(emission.kinds.values())
        return emission

    def fail(at: str) -> None:
        if at == WorkerStep.REPORTED and failing[0]:
            failing[0] -= 1
            raise AbortableError("the log is away")

    worker.step = count  # type: ignore[method-assign]
    process.hook = fail
    for row in range(0, 30, 3):
        world.produce("in", 0, [b"%d" % each for each in range(row, row + 3)])
        world.settle()
    assert failing == [0]
    assert counted == [30]


def test_what_stands_behind_a_block_that_waits_for_a_leader_waits_too() -> None:
    """Several blocks of one poll are answered at once, and the outputs have other numbers of partitions."""
    world = patient_world(1, outputs=4)
    dead, live = b"key-1", b"a longer key"
    assert partition_of(dead, 4) != partition_of(live, 4)
    world.cluster.faults.leaderless.add(Partition(OUTPUT, partition_of(dead, 4)))
    config = replace(WORKER, poll_messages=12, block_bytes=1)
    worker = world.start("a", roles="worker", worker_config=config)
    index = world.start("b", roles="index", index_config=replace(INDEX, max_blocks=32))
    world.run(10)
    for row in range(12):
        world.produce("in", 0, [b"%d" % row], dead if row in (3, 7) else live)
    for _ in range(60):
        worker.step(0.1)
        for _ in range(3):
            index.step(0.1)
    assert world.cluster.group(GROUP).offsets[Partition("in", 0)].offset == 3
    world.cluster.faults.leaderless.clear()
    world.settle()
    came = [origin_of(entry)[2] for log in world.cluster.topics[OUTPUT].logs for _, entry in log.visible()]
    assert sorted(came) == list(range(12))
