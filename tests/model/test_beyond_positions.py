"""Offsets, partitions and topics beyond what a position can say: refused, and the app goes on without them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver import OUTPUT, WORKER, World, texts
from tests.model.test_model_ledger import ask, take
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.ledger import Ledger
from twinsieve.pipeline.wire.block import BlockFlag
from twinsieve.pipeline.wire.positions import MAX_OFFSETS, MAX_PARTITIONS, MAX_TOPICS
from twinsieve.pipeline.wire.ruling import Result
from twinsieve.pipeline.worker import asks as worker_asks

TWO = replace(WORKER, topics=("in", "big"))


def with_big_offsets() -> World:
    """A world with an input topic whose offsets soon end; a process that reads it as well was started."""
    world = World(partitions=1)
    world.start("a")
    world.produce("in", 0, texts(0, 5))
    world.settle()
    world.kill_all()
    world.cluster.create(NewTopic("big", 1))
    world.cluster.log(Partition("big", 0)).beginning = MAX_OFFSETS - 3
    world.produce("big", 0, texts(10, 20))
    world.start("a", worker_config=TWO)
    world.run(60)
    return world


def goes_on_without(world: World) -> bool:
    """Whether a process that reads the first topic alone judges what comes."""
    world.kill_all()
    world.produce("in", 0, texts(5, 10))
    world.start("a")
    world.settle()
    return texts(5, 10) == world.cluster.values(OUTPUT)[-5:]


def test_a_worker_asks_for_no_offset_that_cannot_be_recorded_and_names_it() -> None:
    world = with_big_offsets()
    (stop,) = world.stops
    assert stop.startswith("big[0]@")
    assert "beyond the 1099511627776 that can be recorded; take the topic out of input.topics" in stop
    assert goes_on_without(world)


def test_an_index_that_is_asked_for_such_offsets_refuses_them_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker of another program may not check."""
    monkeypatch.setattr(worker_asks, "beyond_positions", lambda partition, end: None)
    world = with_big_offsets()
    index = world.processes[-1].index
    assert index is not None
    assert not any("app.fingerprints" in stop for stop in world.stops)
    assert goes_on_without(world)


@pytest.mark.parametrize(
    ("number", "end", "result"),
    [
        (0, MAX_OFFSETS, Result.JUDGED),
        (0, MAX_OFFSETS + 1, Result.BEYOND),
        (MAX_PARTITIONS - 1, 5, Result.JUDGED),
        (MAX_PARTITIONS, 5, Result.BEYOND),
    ],
)
def test_the_ledger_refuses_what_positions_cannot_say(number: int, end: int, result: Result) -> None:
    begin = replace(ask(1, end, end, BlockFlag.START), number=number, stable_end=end)
    assert take(Ledger(), begin) is result


def test_one_topic_too_many_is_refused_and_the_others_go_on() -> None:
    ledger = Ledger()
    for topic in range(MAX_TOPICS + 1):
        begin = replace(
            ask(1, 0, 0, BlockFlag.START), topic_id=topic.to_bytes(16, "little"), topic=f"t{topic}"
        )
        assert take(ledger, begin) is (Result.JUDGED if topic < MAX_TOPICS else Result.BEYOND)
    assert take(ledger, replace(ask(1, 0, 5), topic_id=bytes(16))) is Result.JUDGED
