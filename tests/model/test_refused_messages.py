"""A message that a topic refuses costs itself: it leads nobody, and the others of its partition come out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import DEAD, DUPLICATES, OUTPUT, WORKER, Process, World, texts
from tests.model.checker import check_settled
from tests.model.raw import check_world
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.worker.waiting import WaitReason
from twinsieve.stages.contract import Kind

IN0 = Partition("in", 0)
OUTPUTS = [OUTPUT, DUPLICATES, DEAD]


def letters(world: World) -> list[tuple[bytes | None, bytes | None, dict[str, bytes | None]]]:
    """Key, value and headers of each dead letter."""
    logs = world.cluster.topics[DEAD].logs
    return [(e.key, e.value, dict[str, bytes | None](e.headers)) for log in logs for _, e in log.visible()]


def reasons(world: World) -> list[bytes | None]:
    return [headers["twinsieve-reason"] for _, _, headers in letters(world)]


def world_of(on_refused: str = "hold") -> tuple[World, Process]:
    world = World(partitions=2)
    emit = replace(WORKER.emit, on_refused=on_refused)  # type: ignore[arg-type]
    process = world.start("a", worker_config=replace(WORKER, emit=emit))
    world.run(10)
    return world, process


def is_bad(key: bytes | None, _: bytes | None) -> bool:
    return key == b"bad"


def is_poor(_: bytes | None, value: bytes | None) -> bool:
    return value in (b"\xff", b"poor")


def run_until_held(world: World, process: Process) -> None:
    def held() -> bool:
        wait = process.worker.waits.of.get(IN0) if process.worker is not None else None
        return wait is not None and wait.reason is WaitReason.REFUSED

    world.run_until(held)


@pytest.mark.parametrize("text", [b"new", b"first"])
def test_without_a_key_a_message_for_a_compacted_output_is_not_judged(text: bytes) -> None:
    world, _ = world_of()
    world.compact_output(OUTPUT)
    world.produce("in", 0, [b"first"])
    world.settle()
    world.produce("in", 0, [text], key=None)
    world.produce("in", 0, [b"behind"])
    world.settle()
    world.produce("in", 1, [b"new"])
    truth = check_settled(world)
    assert world.emitted() == [0, 2]
    assert sum(kind is Kind.UNIQUE for kind in truth.kinds.values()) == 3
    assert [(key, value) for key, value, _ in letters(world)] == [(None, text)]
    assert reasons(world) == [b"no_key"]
    check_world(world)


def test_a_duplicate_without_a_key_is_a_dead_letter_where_the_duplicates_are_compacted() -> None:
    world, _ = world_of()
    world.compact_output(DUPLICATES)
    world.produce("in", 0, [b"x", b"x", b"y"], key=None)
    check_settled(world)
    assert world.emitted() == [0, 2]
    assert reasons(world) == [b"no_key"]


def test_a_dead_letter_without_a_key_has_its_place_as_key_where_they_are_compacted() -> None:
    world, _ = world_of()
    world.compact_output(DEAD)
    world.produce("in", 0, [b"\xff"], key=None)
    world.produce("in", 0, [b"\xff"], key=b"own")
    check_settled(world)
    assert [key for key, _, _ in letters(world)] == [b"in[0]@0", b"own"]


@pytest.mark.parametrize("bad_at", [[0], [11], [3, 4, 19]])
def test_the_message_that_is_refused_is_found_among_many(bad_at: list[int]) -> None:
    world, process = world_of()
    world.refuse(OUTPUT, is_bad)
    values = texts(0, 20)
    for at, value in enumerate(values):
        world.produce("in", 0, [value], b"bad" if at in bad_at else b"k")
    world.produce("in", 1, texts(30, 33))
    world.settle()
    copied = [values[at] for at in bad_at]
    world.produce("in", 1, copied)
    check_settled(world)
    assert world.emitted() == [at for at in range(20) if at not in bad_at]
    assert world.emitted(number=1) == [*range(3 + len(bad_at))]
    assert [value for _, value, _ in letters(world)] == copied
    for _, _, headers in letters(world):
        assert headers["twinsieve-reason"] == b"refused"
        assert b"a policy forbids it" in (headers["twinsieve-refusal"] or b"")
    assert process.worker is not None
    assert not process.worker.waits.of
    check_world(world)


def test_a_duplicate_that_its_topic_refuses_is_a_dead_letter() -> None:
    world, _ = world_of()
    world.refuse(DUPLICATES, is_bad)
    world.produce("in", 0, [b"x"])
    world.produce("in", 0, [b"x", b"y"], b"bad")
    world.produce("in", 0, [b"x"])
    check_settled(world)
    assert world.emitted() == [0, 2]
    assert [value for _, value, _ in letters(world)] == [b"x"]
    assert reasons(world) == [b"refused"]
    assert len(world.cluster.values(DUPLICATES)) == 1


def test_a_dead_letter_that_is_refused_is_tried_again_without_what_it_does_not_need() -> None:
    world, _ = world_of()
    world.refuse(DEAD, lambda key, _: key is None)
    world.produce("in", 0, [b"\xff"], key=None)
    world.produce("in", 0, [b"y"])
    check_settled(world)
    assert letters(world)[0][:2] == (b"in[0]@0", b"\xff")


@pytest.mark.parametrize("by_size", [True, False])
def test_what_no_topic_takes_holds_its_partition_alone_and_without_leaders(*, by_size: bool) -> None:
    world, process = world_of()
    if by_size:
        world.limit(DEAD, -1)
    else:
        world.refuse(DEAD, is_poor)
    world.produce("in", 0, [b"before", b"\xff"])
    run_until_held(world, process)
    world.produce("in", 0, [b"behind"])
    world.produce("in", 1, [b"other"])
    for _ in range(300):
        world.run(1)
    run_until_held(world, process)
    assert process.worker is not None
    assert "in[0]@1" in process.worker.waits.of[IN0].why
    assert (world.emitted(), world.emitted(number=1)) == ([0], [0])
    # What stands behind it was not judged: nothing is dropped for it.
    world.produce("in", 1, [b"behind"])
    for _ in range(100):
        world.run(1)
    assert world.emitted(number=1) == [0, 1]
    world.limit(DEAD, 1_000)
    world.cluster.faults.refuses_record = lambda *_: None
    check_settled(world)
    assert [value for _, value, _ in letters(world)] == [b"\xff"]
    assert not process.worker.waits.of
    check_world(world)


@pytest.mark.parametrize("by_size", [True, False])
def test_what_no_topic_takes_is_skipped_if_the_operator_says_so(*, by_size: bool) -> None:
    world, process = world_of("skip")
    if by_size:
        world.limit(DEAD, -1)
    else:
        world.refuse(DEAD, is_poor)
    world.produce("in", 0, [b"before", b"\xff", b"behind"])
    world.settle()
    assert world.emitted() == [0, 2]
    assert letters(world) == []
    assert process.skipped == {DeadLetterReason.NOT_UTF8: 1}
    assert [said for said in process.notices if "in[0]@1" in said and "skipped" in said]
