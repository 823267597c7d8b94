"""Offsets in the workers' group that twinsieve did not commit move nothing; only `twinsieve reset` does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import GROUP, OUTPUT, WORKER, Process, World, texts
from tests.model.test_model_ledger import ask, take
from twinsieve.pipeline.broker.mark import moved, read_mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Committed, Partition
from twinsieve.pipeline.index.ledger import Ledger
from twinsieve.pipeline.wire.block import BlockFlag
from twinsieve.pipeline.wire.ruling import Result

IN = Partition("in", 0)
RECORD = Names.emitted(GROUP)


def stopped_after(count: int) -> World:
    """Everything came out; then the process was killed, and ten messages were added."""
    world = World(partitions=1)
    world.produce("in", 0, texts(0, count))
    world.start("a")
    world.settle()
    world.kill_all()
    world.produce("in", 0, texts(count, count + 10))
    return world


def restarted(world: World) -> Process:
    process = world.start("a")
    world.settle()
    assert world.stops == []
    return process


@pytest.mark.parametrize("found", [Committed(0), Committed(17), Committed(20), Committed(500), None])
def test_the_offset_on_record_counts_and_not_the_one_in_the_group(found: Committed | None) -> None:
    world = stopped_after(10)
    offsets = world.cluster.group(GROUP).offsets
    offsets.pop(IN)
    if found is not None:
        offsets[IN] = found
    process = restarted(world)
    assert world.cluster.values(OUTPUT) == texts(0, 20)
    assert process.worker is not None
    assert process.worker.foreign_offsets == 1
    (said,) = [line for line in process.notices if "by twinsieve in group" in line]
    assert said.startswith("in[0]: ")
    assert "continuing at offset 10" in said
    assert offsets[IN] == world.cluster.group(RECORD).offsets[IN]


def test_an_app_that_ran_before_there_was_a_record_goes_on() -> None:
    world = stopped_after(10)
    world.cluster.group(RECORD).offsets.clear()
    held = world.cluster.group(GROUP).offsets[IN]
    world.cluster.group(GROUP).offsets[IN] = held._replace(metadata=f"4{held.metadata[1:]}")
    process = restarted(world)
    assert world.cluster.values(OUTPUT) == texts(0, 20)
    assert process.worker is not None
    assert process.worker.foreign_offsets == 0


def test_a_worker_of_an_earlier_version_may_have_gone_further_than_the_record() -> None:
    world = stopped_after(10)
    early = world.cluster.group(RECORD).offsets[IN]
    restarted(world)
    world.kill_all()
    world.cluster.group(RECORD).offsets[IN] = early
    process = restarted(world)
    assert world.cluster.values(OUTPUT) == texts(0, 20)
    assert process.worker is not None
    assert process.worker.foreign_offsets == 0


def test_where_nothing_is_on_record_it_stops_and_skips_nothing() -> None:
    world = stopped_after(10)
    world.cluster.group(RECORD).offsets.clear()
    world.cluster.group(GROUP).offsets[IN] = Committed(15)
    world.start("a")
    world.run(80)
    assert "no offset that twinsieve committed" in world.stops[0]
    assert "twinsieve reset" in world.stops[0]
    assert world.cluster.values(OUTPUT) == texts(0, 10)


def test_a_new_app_begins_where_its_settings_say_whatever_stands_in_the_group() -> None:
    world = World(partitions=1)
    world.produce("in", 0, texts(0, 10))
    world.cluster.group(GROUP).offsets[IN] = Committed(7)
    restarted(world)
    assert world.cluster.values(OUTPUT) == texts(0, 10)


@pytest.mark.parametrize("to", [0, 14])
def test_a_reset_counts_after_others_have_moved_the_offset(to: int) -> None:
    world = stopped_after(10)
    world.cluster.group(GROUP).offsets[IN] = Committed(18)
    world.move_offset(IN, to)
    mark = read_mark(world.cluster.group(GROUP).offsets[IN].metadata)
    assert mark is not None
    assert (mark.first, mark.end) == (0, 10)
    restarted(world)
    assert world.cluster.values(OUTPUT) == texts(0, 10) + texts(max(10, to), 20)


def test_a_reset_to_the_end_of_what_came_out_is_kept_over_a_kill() -> None:
    """The worker is killed after it has taken the offset over, and before the index has passed over anything."""
    world = stopped_after(10)
    world.start("a")
    world.processes[-1].step()
    world.processes[-1].step()
    world.kill_all()
    world.move_offset(IN, 20)
    for _ in range(3):
        process = world.start("a", worker_config=replace(WORKER, check_s=0.0, report_s=1e9))
        world.run(6)
        process.kill()
        world.clock.sleep(20.0)
    world.produce("in", 0, texts(20, 22))
    restarted(world)
    assert world.cluster.values(OUTPUT) == texts(0, 10) + texts(20, 22)


def test_an_old_order_of_reset_does_not_count() -> None:
    """A tool that keeps texts puts it back after the app has gone on."""
    world = stopped_after(5)
    topic_id = world.cluster.topics["in"].topic_id
    old = moved(world.cluster.group(GROUP).offsets[IN], topic_id, 15)
    restarted(world)
    world.kill_all()
    world.cluster.group(GROUP).offsets[IN] = old
    world.produce("in", 0, texts(15, 20))
    restarted(world)
    assert world.cluster.values(OUTPUT) == texts(0, 20)


@pytest.mark.parametrize("version", ["5-reset", "4"])
def test_an_order_of_reset_ends_when_the_index_has_passed_over_what_it_leaves_out(version: str) -> None:
    """A mark of an earlier version does not say whether there was one."""
    world = stopped_after(10)
    world.move_offset(IN, 14)
    offsets = world.cluster.group(GROUP).offsets
    offsets[IN] = Committed(14, offsets[IN].metadata.replace("5-reset", version))
    process = world.start("a")
    marks = []
    for _ in range(100):
        world.run(1)
        marks.append(read_mark(offsets[IN].metadata))
    assert world.cluster.values(OUTPUT) == texts(0, 10) + texts(14, 20)
    assert all(mark is not None and mark.reset == (mark.end <= 14) for mark in marks), marks
    assert process.running


def test_an_index_passes_over_nothing_that_no_reset_leaves_out() -> None:
    ledger = Ledger()
    take(ledger, ask(1, 0, 0, BlockFlag.START))
    take(ledger, ask(1, 0, 10))
    begins = replace(ask(2, 8, 8, BlockFlag.START | BlockFlag.CERTIFIED), emitted_from=0, emitted_to=5)
    assert ledger.check(begins) is Result.LEFT_OUT
    assert ledger.check(replace(begins, emitted_from=5, emitted_to=8)) is Result.LEFT_OUT
    assert ledger.check(replace(begins, emitted_to=8)) is Result.JUDGED
    assert ledger.check(replace(begins, beginning=8)) is Result.JUDGED
    assert ledger.check(replace(begins, flags=begins.flags | BlockFlag.RESET)) is Result.JUDGED
