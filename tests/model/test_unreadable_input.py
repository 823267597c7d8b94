"""A batch of the input that cannot be read holds or costs its own partition, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, cast

import pytest

from tests.driver import DEAD, OUTPUT, WORKER, Process, World, texts
from tests.model.checker import check_settled
from tests.model.test_inputs_gone import pass_time
from tests.model.test_passed_over import IN, judged_not_emitted
from tests.model.test_passed_over import out as came_out
from twinsieve.pipeline.broker.records import Partition, PollResult, UnreadableError
from twinsieve.pipeline.worker.waiting import WaitReason

BAD = Partition("in", 1)
_BATCH = range(10, 15)


def world_with_bad_batch() -> World:
    world = World(2)
    world.cluster.faults.unreadable[BAD] = [_BATCH]
    write(world, 0, 30)
    return world


def write(world: World, first: int, end: int) -> None:
    for number in range(2):
        world.produce("in", number, [b"%d %d" % (number, row) for row in range(first, end)])


def out(world: World) -> list[list[int]]:
    """Input offsets of what came out, by partition."""
    return [world.emitted(OUTPUT, number) for number in range(2)]


def unreadable(process: Process) -> dict[Partition, str]:
    """Partitions that wait for such a batch, each with what the operator is told."""
    assert process.worker is not None
    waits = process.worker.waits.of.items()
    return {part: wait.why for part, wait in waits if wait.reason is WaitReason.UNREADABLE}


def test_a_held_batch_delays_only_what_is_behind_it_on_every_process_that_gets_it() -> None:
    world = world_with_bad_batch()
    for slot in ("a", "b"):
        process = world.start(slot)
        pass_time(world, 90.0)
        write(world, *((30, 40) if slot == "a" else (40, 50)))
        pass_time(world, 90.0)
        assert out(world) == [list(range(40 if slot == "a" else 50)), list(range(10))]
        assert process.running
        assert "in[1]@10: cannot be decoded (wrong checksum); repair the topic" in unreadable(process)[BAD]
        assert "twinsieve reset --to 'in[1]=15'" in unreadable(process)[BAD]
        assert process.worker is not None
        assert process.worker.ready
        if slot == "a":
            world.kill_all()
    world.cluster.faults.unreadable.clear()
    world.settle()
    assert out(world) == [list(range(50))] * 2
    assert unreadable(process) == {}
    assert world.stops == []


def test_messages_before_the_batch_do_not_end_the_wait_for_it() -> None:
    world = world_with_bad_batch()
    process = world.start("a")
    seen = []
    for _ in range(400):
        world.run(1)
        seen.append((len(world.emitted(OUTPUT, 1)), BAD in unreadable(process)))
    assert (10, False) not in seen[seen.index((10, True)) :]


def test_tries_become_rare() -> None:
    world = world_with_bad_batch()
    process = world.start("a")
    pass_time(world, 30.0)
    tries = []
    seek = process.worker._consumer.seek  # type: ignore[union-attr]

    def counted(partition: Partition, offset: int, *more: int) -> None:
        tries.append(world.clock.monotonic_s())
        seek(partition, offset, *more)

    process.worker._consumer.seek = counted  # type: ignore[union-attr,method-assign]
    pass_time(world, 600.0)
    pauses = [after - before for before, after in pairwise(tries)]
    assert all(59.0 < pause < 63.0 for pause in pauses[3:]), pauses
    assert len(pauses) > 5


@pytest.mark.parametrize("behind", [True, False])
def test_skipped_offsets_are_counted_once_and_the_partition_goes_on(behind: bool) -> None:
    """behind: messages follow the batch"""
    world = world_with_bad_batch()
    batches = [_BATCH, range(20, 22)] if behind else [range(10, 30)]
    world.cluster.faults.unreadable[BAD] = batches
    config = replace(WORKER, on_unreadable="skip")
    process = world.start("a", worker_config=config)
    world.settle()
    bad = [row for batch in batches for row in batch]
    assert out(world) == [list(range(30)), [row for row in range(30) if row not in bad]]
    assert process.worker is not None
    assert process.worker.skipped == len(bad)
    for batch in batches:
        said = f"skipped offsets {batch.start} to {batch.stop - 1}"
        assert sum(said in line for line in process.notices) == 1
    world.kill_all()
    again = world.start("b", worker_config=config)
    write(world, 30, 40)
    world.settle()
    assert again.worker is not None
    assert again.worker.skipped == 0
    assert out(world)[1] == [row for row in range(40) if row not in bad]
    assert world.stops == []


def test_retention_that_takes_the_batch_ends_the_wait() -> None:
    world = world_with_bad_batch()
    process = world.start("a")
    pass_time(world, 60.0)
    world.trim(BAD, 20)
    world.settle()
    assert out(world)[1] == [*range(10), *range(20, 30)]
    assert unreadable(process) == {}
    assert process.worker is not None
    assert process.worker.trimmed == 10


def test_an_offset_that_was_reset_behind_the_batch_is_where_it_goes_on() -> None:
    world = world_with_bad_batch()
    world.start("a")
    pass_time(world, 30.0)
    world.kill_all()
    world.move_offset(BAD, _BATCH.stop)
    process = world.start("a")
    world.settle()
    assert out(world)[1] == [*range(10), *range(15, 30)]
    assert unreadable(process) == {}


def test_copies_of_what_was_skipped_come_out() -> None:
    """What was never judged leads nothing."""
    world = World(1)
    world.cluster.faults.unreadable[Partition("in", 0)] = [range(3, 6)]
    world.start("a", worker_config=replace(WORKER, on_unreadable="skip"))
    world.produce("in", 0, texts(0, 8))
    world.produce("in", 0, texts(0, 8))
    world.settle()
    assert world.emitted() == [0, 1, 2, 6, 7, 11, 12, 13]


@pytest.mark.parametrize("on_unreadable", ["hold", "skip"])
def test_nothing_before_the_batch_is_lost_while_a_refused_message_is_searched(
    on_unreadable: Literal["hold", "skip"],
) -> None:
    """The search seeks back, after the poll has met the batch."""
    world, at = World(1), Partition("in", 0)
    world.produce("in", 0, texts(0, 12))
    world.refuse(OUTPUT, lambda _, value: value == b"text 2")
    world.cluster.faults.unreadable[at] = [range(7, 9)]
    world.start("a", worker_config=replace(WORKER, on_unreadable=on_unreadable))
    pass_time(world, 120.0)
    assert world.emitted(DEAD) == [2]
    assert world.emitted(OUTPUT) == [0, 1, 3, 4, 5, 6] + ([9, 10, 11] if on_unreadable == "skip" else [])
    world.cluster.faults.unreadable.clear()
    world.settle()
    left = [7, 8] if on_unreadable == "hold" else []
    assert world.emitted(OUTPUT) == [0, 1, 3, 4, 5, 6, *left, 9, 10, 11]


def reading(world: World, process: Process, partition: Partition) -> Any:
    """The consumer of a worker that reads this partition."""
    while process.worker is None or not any(
        each.partition == partition and each.reads for each in process.worker._sessions.values()
    ):
        world.run(1)
    return process.worker._consumer


@pytest.mark.parametrize("on_unreadable", ["hold", "skip"])
def test_a_report_of_a_batch_beyond_the_read_position_skips_and_holds_nothing(
    on_unreadable: Literal["hold", "skip"],
) -> None:
    world, at = World(1), Partition("in", 0)
    process = world.start("a", worker_config=replace(WORKER, on_unreadable=on_unreadable))
    consumer = reading(world, process, at)
    world.produce("in", 0, texts(0, 12))
    poll, reports = consumer.poll, [UnreadableError(at, 7, "wrong checksum", 9)]

    def reports_once(timeout_s: float, max_records: int) -> PollResult:
        if reports:
            raise reports.pop()
        return cast(PollResult, poll(timeout_s, max_records))

    consumer.poll = reports_once
    world.settle()
    assert world.emitted(OUTPUT) == list(range(12))
    assert process.worker is not None
    assert process.worker.skipped == 0
    assert not reports


def test_a_batch_behind_a_gap_is_skipped() -> None:
    """A client may name the first offset of the batch while its position is before the gap."""
    world, at = World(1), Partition("in", 0)
    process = world.start("a", worker_config=replace(WORKER, on_unreadable="skip"))
    consumer = reading(world, process, at)
    world.produce("in", 0, texts(0, 12))
    world.compact(at, [5, 6])
    world.cluster.faults.unreadable[at] = [range(5, 9)]
    poll = consumer.poll

    def names_the_batch(timeout_s: float, max_records: int) -> PollResult:
        try:
            return cast(PollResult, poll(timeout_s, max_records))
        except UnreadableError as error:
            raise UnreadableError(at, 7, "wrong checksum", error.after) from error

    consumer.poll = names_the_batch
    world.settle()
    assert world.emitted(OUTPUT) == [0, 1, 2, 3, 4, 9, 10, 11]
    assert process.worker is not None
    assert process.worker.skipped == 2


def test_what_was_judged_and_then_skipped_stays_lost_and_leads_nobody() -> None:
    """It can be read again later, and the offset is moved back: its offsets count as done. A copy comes out."""
    world = judged_not_emitted([b"x", b"y", b"z"])
    batch = range(2, 3)
    world.cluster.faults.unreadable[IN] = [batch]
    world.history.cannot_read(IN, batch)
    config = replace(WORKER, on_unreadable="skip")
    world.start("a", worker_config=config)
    world.settle()
    assert came_out(world) == [b"first", b"x", b"z"]
    world.kill_all()
    world.cluster.faults.unreadable.clear()
    world.move_offset(IN, 0)
    world.start("a", worker_config=config)
    world.settle()
    assert came_out(world) == [b"first", b"x", b"z"]
    world.produce("in", 0, [b"y"])
    check_settled(world, in_order=False)
    assert came_out(world) == [b"first", b"x", b"z", b"y"]


@pytest.mark.parametrize("behind", [0, 3])
def test_a_skipped_batch_that_can_be_read_again_stays_skipped(behind: int) -> None:
    """As from another replica of the partition. behind: messages after the batch, not yet emitted"""
    world = World(2)
    world.cluster.faults.unreadable[BAD] = [_BATCH]
    write(world, 0, 15)
    config = replace(WORKER, on_unreadable="skip")
    process = world.start("a", worker_config=config)
    world.settle()
    world.kill_all()
    world.cluster.faults.unreadable.clear()
    write(world, 15, 15 + behind)
    again = world.start("b", worker_config=config)
    world.settle()
    write(world, 20, 30)
    world.settle()
    assert out(world)[1] == [row for row in range(25 + behind) if row not in _BATCH]
    assert world.stops == []
    said = [line for line in again.notices if "can be read again" in line]
    assert said[0].startswith("in[1]: offsets 10 to ")
    assert process.worker is not None
    assert process.worker.skipped == len(_BATCH)
