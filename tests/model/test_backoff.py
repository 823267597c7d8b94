"""A worker whose transactions are refused again and again asks ever less often: the log is kept for ever."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from tests.driver import LOG, WORKER, World
from tests.model.checker import check_settled
from tests.model.test_inputs_gone import pass_time
from twinsieve.pipeline.broker.records import AbortableError
from twinsieve.pipeline.worker.config import WorkerStep


def test_refused_emissions_fill_the_log_ever_more_slowly() -> None:
    world = World(partitions=1)
    process = world.start("a")
    world.produce("in", 0, [b"a", b"b"])
    world.settle()
    refused_s: list[float] = []

    def refuse(step: str) -> None:
        if step == WorkerStep.OFFSETS_SENT:
            refused_s.append(world.clock.monotonic_s())
            raise AbortableError("the output takes no such message")

    process.hook = refuse
    world.produce("in", 0, [b"c", b"d"])
    before = world.cluster.log(LOG).end
    pass_time(world, 120.0)
    assert len(refused_s) > 8
    assert len(refused_s) < 60, "eight in the first seconds, then one in five"
    assert world.cluster.log(LOG).end - before < 200
    pauses = [later - sooner for sooner, later in pairwise(refused_s)]
    assert min(pauses[-5:]) > 4 * min(pauses[:3])
    process.hook = lambda _: None
    check_settled(world)


def test_a_long_patience_is_kept() -> None:
    world = World(partitions=1)
    process = world.start("a", roles="worker", worker_config=replace(WORKER, answer_s=100.0))
    world.produce("in", 0, [b"a"])
    pass_time(world, 90.0)
    assert process.notices == []
    pass_time(world, 20.0)
    assert process.notices == ["in[0]: no answer from the index for 100 s; asking again"]
