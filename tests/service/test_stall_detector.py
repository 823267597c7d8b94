"""Roles whose clients stop reading, or reach nobody, get new ones; one that has nothing to do is left alone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from tests.memory.broker import MemoryBroker, MemoryCluster
from tests.memory.clients import MemoryReader
from tests.memory.consumer import MemoryConsumer
from tests.service.running import Service, came_out, wait_for
from tests.service.test_service import POSTS, produce
from tests.service.test_service import settings as settings
from twinsieve.pipeline.broker.records import AbortableError, Partition, PollResult
from twinsieve.pipeline.service import loop as service_loop
from twinsieve.pipeline.service.stall_detector import StallDetector
from twinsieve.pipeline.settings.model import Settings

ONE, TWO = Partition("posts", 0), Partition("posts", 1)


def looks(*seen: tuple[int, int, bool]) -> list[bool]:
    """Whether each look found the partition still: emitted, end, waiting."""
    detector = StallDetector()
    return [bool(detector.stalled({ONE: (emitted, end)}, waiting=wait)) for emitted, end, wait in seen]


def test_only_what_does_not_move_though_there_is_input_stands_still() -> None:
    assert looks(*[(5, 9, False)] * 5) == [False, False, False, True, True]
    assert looks(*[(5, 9 + more, False) for more in range(4)])[-1], "a growing end is no movement"
    assert not any(looks(*[(5, 5, False)] * 9)), "nothing to read"
    assert not any(looks(*[(5 + more, 50, False) for more in range(9)])), "it moves"
    assert not any(looks(*[(5, 9, True)] * 9)), "it waits for the index"
    assert looks(*[(5, 9, False)] * 3, (5, 9, True), *[(5, 9, False)] * 4)[3:] == [False] * 4 + [True]


def test_a_partition_that_comes_back_is_counted_anew() -> None:
    detector = StallDetector()
    for _ in range(3):
        assert detector.stalled({ONE: (1, 2), TWO: (1, 2)}, waiting=False) == []
    assert detector.stalled({TWO: (1, 2)}, waiting=False) == [TWO]
    assert detector.stalled({ONE: (1, 2), TWO: (2, 2)}, waiting=False) == []


def test_a_worker_whose_client_has_gone_deaf_goes_on_with_a_new_one(
    settings: Settings, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf: list[MemoryConsumer] = []
    asked: list[None] = []
    poll = MemoryConsumer.poll

    def hear(self: MemoryConsumer, timeout_s: float, max_records: int) -> PollResult:
        if self in deaf:
            self._reader.pause(self._assignment)
            asked.append(None)
        return poll(self, timeout_s, max_records)

    made: list[MemoryConsumer] = []

    class Broker(MemoryBroker):
        def group_consumer(self, group: str, topics: object, member: str | None = None) -> MemoryConsumer:
            consumer = super().group_consumer(group, topics, member)  # type: ignore[arg-type]
            if group.endswith(".workers"):
                made.append(consumer)
            return consumer

    monkeypatch.setattr(MemoryConsumer, "poll", hear)
    monkeypatch.setattr(service_loop, "_QUERY_EVERY_S", 0.1)
    service = Service(settings, cluster, member="one", broker=Broker)
    produce(cluster, POSTS[:1])
    wait_for(lambda: came_out(cluster, "posts.unique") == 1, "one")
    deaf.append(made[-1])
    wait_for(lambda: len(asked) > 1, "a poll that began deaf")
    produce(cluster, POSTS[1:2])
    wait_for(lambda: came_out(cluster, "posts.unique") == 2, "the second by a new client")
    assert len(made) > 1
    service.end()


def test_a_role_that_reaches_no_broker_for_minutes_begins_with_new_clients(
    settings: Settings, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_loop, "_QUERY_EVERY_S", 0.05)
    monkeypatch.setattr(service_loop, "_NEW_CLIENTS_S", 0.5)
    made: list[MemoryReader] = []
    unreachable: list[MemoryReader] = []
    begin, ends = MemoryReader.__init__, MemoryReader.end_offsets

    def begins(self: MemoryReader, *given: Any, **more: Any) -> None:
        begin(self, *given, **more)
        made.append(self)

    def end_offsets(self: MemoryReader, partitions: Collection[Partition]) -> dict[Partition, int]:
        if self in unreachable:
            raise AbortableError("no broker answers")
        return ends(self, partitions)

    monkeypatch.setattr(MemoryReader, "__init__", begins)
    monkeypatch.setattr(MemoryReader, "end_offsets", end_offsets)
    service = Service(settings, cluster, member="one")
    produce(cluster, POSTS[:1])
    wait_for(lambda: came_out(cluster, "posts.unique") == 1, "one")
    unreachable.extend(made)
    wait_for(lambda: len(made) >= len(unreachable) + 2, "new clients for both roles")
    produce(cluster, POSTS[1:2])
    wait_for(lambda: came_out(cluster, "posts.unique") == 2, "the second by new clients")
    service.end()
