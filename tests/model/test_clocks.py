"""Clocks of processes that are wrong, and jump: everything comes out, once, and somebody says so."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.driver import DEAD, DECISIONS, DUPLICATES, LOG, OUTPUT, VERDICTS, Process, World, texts
from twinsieve.pipeline.broker.records import NO_TIMESTAMP, Messages, Partition

HOUR_S = 3_600.0
LIMITS = {"message.timestamp.before.max.ms": "3600000", "message.timestamp.after.max.ms": "3600000"}
"""What Kafka 4 takes by default, and as little into the past."""


def world_of(*ahead_s: float, partitions: int = 2) -> World:
    """A process for each clock; no topic takes times that are more than an hour off."""
    world = World(partitions=partitions)
    for topic in world.cluster.topics.values():
        topic.settings.update(LIMITS)
    for slot, each in zip("abc", ahead_s, strict=False):
        world.start(slot, ahead_s=each)
    return world


def older(world: World) -> None:
    """The internal topics are as an earlier version made them."""
    for topic in world.cluster.topics.values():
        topic.settings.pop("message.timestamp.type", None)


def settled(world: World, partitions: int, each: int) -> None:
    """So many messages come out of each partition, once and in order, and nothing else is written."""
    world.settle()
    for number in range(partitions):
        assert world.emitted(number=number) == list(range(each))
        assert world.cluster.values(DEAD, number) == world.cluster.values(DUPLICATES, number) == []


def said(process: Process) -> list[str]:
    """What both roles of a process say of its clock."""
    roles = [*process.notices, *(process.index.notices if process.index is not None else [])]
    return [notice for notice in roles if "clock of this process" in notice]


def produce(world: World, partition: int, values: Sequence[bytes | None], stamp_ms: int) -> None:
    messages = Messages()
    for value in values:
        messages.add(b"k", value, (), stamp_ms)
    world.cluster.topics["in"].settings.clear()
    world.cluster.write(Partition("in", partition), messages)


@pytest.mark.parametrize(
    "ahead_s",
    [(0.0, 0.0), (-2.0, 0.0), (0.0, -2.0), (2.0, 0.0), (0.0, 2.0), (-2.0, 2.0), (24_000.0, -24_000.0)],
)
def test_all_comes_out_once_however_wrong_clocks_are_and_those_say_so(ahead_s: tuple[float, float]) -> None:
    world = world_of(*(hours * HOUR_S for hours in ahead_s))
    for first in range(0, 40, 10):
        for number in (0, 1):
            world.produce("in", number, texts(100 * number + first, 100 * number + first + 10))
        world.run(20)
    settled(world, 2, 40)
    assert world.clock.monotonic_s() < 30
    assert [bool(said(process)) for process in world.processes] == [hours != 0 for hours in ahead_s]


def test_a_jumping_clock_loses_nothing_and_is_logged_within_half_a_minute() -> None:
    world = world_of(0.0, 0.0)
    one, other = world.processes
    count = 0
    for hours in (-2, 2, 0, -30, 0, 2):
        told = len(said(one))
        one.clock.ahead_s = hours * HOUR_S
        until_s = world.clock.monotonic_s() + 30
        while world.clock.monotonic_s() < until_s:
            for number in (0, 1):
                world.produce("in", number, texts(1_000 * number + count, 1_000 * number + count + 2))
            count += 2
            world.run(10)
        assert len(said(one)) > told
        assert ("again" if hours == 0 else "ahead" if hours > 0 else "behind") in said(one)[-1]
    settled(world, 2, count)
    assert said(other) == []


def test_a_message_without_a_time_gets_the_broker_s_and_no_wrong_clock_s() -> None:
    world = world_of(2 * HOUR_S, partitions=1)
    world.cluster.log(Partition("in", 0))
    messages = Messages()
    for value in texts(0, 3):
        messages.add(b"k", value)
    world.cluster.write(Partition("in", 0), messages)
    for entry in world.cluster.log(Partition("in", 0)).entries:
        entry.timestamp_ms = NO_TIMESTAMP
    settled(world, 1, 3)
    (log,) = world.cluster.topics[OUTPUT].logs
    stamps = [entry.timestamp_ms for _, entry in log.visible()]
    assert all(abs(stamp - world.clock.now_ms()) < 60_000 for stamp in stamps)


@pytest.mark.parametrize("ahead_s", [0.0, -2 * HOUR_S, 2 * HOUR_S])
def test_a_time_that_the_output_refuses_makes_a_dead_letter_by_any_clock(ahead_s: float) -> None:
    world = world_of(ahead_s, partitions=1)
    world.produce("in", 0, [b"first"])
    world.settle()
    now_ms = world.clock.now_ms()
    for hours in (2, -2):
        produce(world, 0, [b"%d hours" % hours], now_ms + round(hours * HOUR_S * 1000))
    produce(world, 0, [b"last"], now_ms)
    world.settle()
    assert world.emitted() == [0, 3]
    assert world.cluster.values(DEAD) == [b"2 hours", b"-2 hours"]


def test_a_machine_that_stood_still_without_noticing_buries_nothing() -> None:
    world = world_of(0.0, partitions=1)
    (process,) = world.processes
    world.produce("in", 0, [b"before"])
    world.settle()
    # The broker still counts it as a member, so that nothing begins anew.
    world.cluster.groups["app.workers"].session_timeout_s = 1e9
    world.cluster.groups["app.index"].session_timeout_s = 1e9
    world.clock.sleep(3 * HOUR_S)
    process.clock.paused_s += 3 * HOUR_S
    world.produce("in", 0, [b"behind", b"another"])
    settled(world, 1, 3)


def test_no_time_makes_a_dead_letter_where_the_log_keeps_writers_times() -> None:
    world = world_of(-2 * HOUR_S, partitions=1)
    older(world)
    for topic in (LOG.topic, VERDICTS, DECISIONS.topic):
        world.cluster.topics[topic].settings.clear()
    world.produce("in", 0, texts(0, 5))
    settled(world, 1, 5)


def test_a_refused_time_costs_its_message_alone_where_no_clock_is_heard() -> None:
    world = world_of(0.0)
    older(world)
    now_ms = world.clock.now_ms()
    world.produce("in", 0, [b"first"])
    produce(world, 0, [b"ahead"], now_ms + round(3 * HOUR_S * 1000))
    world.produce("in", 0, [b"last"])
    world.produce("in", 1, texts(0, 5))
    world.settle()
    assert world.emitted(number=1) == list(range(5))
    assert world.emitted(number=0) == [0, 2]
    assert any("InvalidTimestamp" in notice for notice in world.processes[0].notices)
    assert world.cluster.values(DEAD) == [b"ahead"]
