"""Sizes of topics are asked for beside everything else, once a minute, and whoever may not know them is told so once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from tests.twins import AtOnce
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import BrokerError, Messages, Partition
from twinsieve.pipeline.operate.log_sizes import LogSizes

TOPICS = ("t.fingerprints", "t.decisions")


class _Counting(AtOnce):
    """Counts what it is given."""

    def __init__(self) -> None:
        self.asked = 0

    def submit(self, call: Callable[..., Any], /, *given: Any, **more: Any) -> Future[Any]:
        self.asked += 1
        return super().submit(call, *given, **more)


class _Denied(MemoryBroker):
    """Tells nobody how large anything is."""

    def admin(self) -> Any:
        admin = super().admin()
        admin.log_bytes = lambda topics: {}  # type: ignore[method-assign, misc]
        return admin


class _Away(MemoryBroker):
    def admin(self) -> Any:
        raise BrokerError("topic: no answer; the broker is away", retryable=True)


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster(ManualClock())
    for name in (*TOPICS, "others"):
        made.create(NewTopic(name, 2))
    written = Messages()
    written.add(b"key", bytes(1000))
    for at in (Partition("t.fingerprints", 0), Partition("t.fingerprints", 1), Partition("others", 0)):
        made.write(at, written)
    return made


def test_what_is_known_is_given_once_and_asked_again_after_a_minute(cluster: MemoryCluster) -> None:
    clock, background = ManualClock(), _Counting()
    sizes = LogSizes(lambda: MemoryBroker(cluster), TOPICS, background, clock)
    assert sizes.newest() is None
    assert sizes.newest() == {"t.fingerprints": 2006, "t.decisions": 0}
    assert sizes.newest() is None
    clock.sleep(59.0)
    assert sizes.newest() is None
    assert background.asked == 1
    clock.sleep(1.0)
    assert sizes.newest() is None
    assert background.asked == 2
    cluster.log(Partition("t.fingerprints", 0)).trim(1)
    assert sizes.newest() == {"t.fingerprints": 2006, "t.decisions": 0}, "as it was when it was asked"


def test_who_may_not_know_them_is_told_once_what_to_grant(
    cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    sizes = LogSizes(lambda: _Denied(cluster), TOPICS, AtOnce(), clock)
    found = []
    for _ in range(4):
        found.append(sizes.newest())
        clock.sleep(60.0)
    assert found == [None, {}, {}, {}]
    assert [record.getMessage().count("grant Describe on the cluster") for record in caplog.records] == [1]


def test_a_broker_that_is_away_costs_nothing_but_the_sizes(
    cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    clock, brokers = ManualClock(), [_Away(cluster), MemoryBroker(cluster)]
    sizes = LogSizes(lambda: brokers.pop(0), TOPICS, AtOnce(), clock)
    assert sizes.newest() is None
    assert sizes.newest() == {}
    assert "the broker is away" in caplog.text
    clock.sleep(60.0)
    assert sizes.newest() is None
    assert sizes.newest() == {"t.fingerprints": 2006, "t.decisions": 0}
