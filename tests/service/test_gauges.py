"""Gauges that alerts stand on stay true when no broker answers and when there is no role."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.memory.broker import ManualClock, MemoryBroker
from tests.service.test_changed_settings import Deployment, base, deployment, posts
from tests.service.test_changed_settings import scheme as scheme
from tests.twins import Later
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.service.loops import IndexLoop, Loop, WorkerLoop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.wire.ruling import Result, Ruling, Source
from twinsieve.stages.contract import Flag, Kind, Verdicts
from twinsieve.stages.judge.scheme import Scheme

LOG = Partition("t.fingerprints", 0)


class Roles:
    """Both loops of a process, turned by hand."""

    def __init__(self, folder: Path, scheme: Scheme) -> None:
        settings = base(str(folder))
        self.world: Deployment = deployment(settings, scheme)
        broker = MemoryBroker(self.world.cluster)
        clock = self.world.clock
        self.metrics = Metrics(clock)
        builder = Builder(settings, scheme, clock, lambda _: broker, "one", emit=True, background=Later())
        self.index = IndexLoop(builder, clock, self.metrics)
        self.worker = WorkerLoop(builder, clock, self.metrics)
        self.loops: list[Loop] = [self.worker, self.index]

    def turn(self, times: int) -> None:
        for _ in range(times):
            for loop in self.loops:
                loop._turn()

    def value(self, name: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"twinsieve_{name}")


@pytest.fixture
def roles(tmp_path: Path, scheme: Scheme) -> Roles:
    made = Roles(tmp_path, scheme)
    made.world.produce(posts(1, 9))
    made.turn(40)
    assert made.world.done()
    return made


def test_an_index_that_no_broker_answers_does_not_say_that_it_judges(roles: Roles) -> None:
    assert roles.value("index_live") == 1
    before = roles.value("snapshot_age_seconds")
    roles.world.cluster.reachable = False
    roles.world.clock.sleep(240.0)
    roles.turn(2)
    assert roles.value("index_live") == 0
    assert before is not None
    assert roles.value("snapshot_age_seconds") >= before + 240.0  # type: ignore[operator]
    roles.world.cluster.reachable = True
    roles.turn(40)
    assert roles.value("index_live") == 1


def test_the_index_that_judges_says_how_large_the_log_is_and_no_other(roles: Roles) -> None:
    def shown() -> float | None:
        where = {"topic": "t.fingerprints"}
        return roles.metrics.registry.get_sample_value("twinsieve_log_bytes", where)

    written = sum(len(entry.value or b"") for entry in roles.world.cluster.log(LOG).entries)
    for _ in range(8):
        roles.world.clock.sleep(10.0)
        roles.turn(5)
    assert roles.value("index_live") == 1
    size = shown()
    assert size is not None
    assert size >= written > 0
    roles.index._give_up()
    roles.index._set_gauges()
    assert shown() is None


def test_roles_that_are_gone_wait_for_nothing(roles: Roles) -> None:
    roles.loops = [roles.worker]
    roles.world.produce(posts(2, 9))
    roles.turn(5)
    roles.worker._set_gauges()
    assert roles.value("unanswered_blocks") == 1
    roles.worker._give_up()
    roles.worker._set_gauges()
    roles.index._give_up()
    roles.index._set_gauges()
    assert roles.value("unanswered_blocks") == 0
    assert roles.value("index_live") == 0


def test_a_verdict_that_is_said_again_is_not_counted_again() -> None:
    metrics = Metrics(ManualClock())
    verdicts = Verdicts.blank(4, fill={"kinds": Kind.EXACT})
    verdicts.flags[:3] = Flag.UNCONFIRMED
    sources = np.array([Source.NEW, Source.NEW, Source.STORED, Source.NEW], np.uint8)
    metrics.ruled(Ruling(0, 1, Result.JUDGED, 0, 4, sources, verdicts))
    assert metrics.registry.get_sample_value("twinsieve_index_unconfirmed_total") == 2
