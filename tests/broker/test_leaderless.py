"""A description of a topic names its partitions without a leader, at once."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from tests.broker import stranger
from tests.broker.cluster import Cluster
from tests.broker.worlds import Connect, fresh, reader_at, until, until_done
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import AbortableError, BrokerError, Committed, Partition
from twinsieve.pipeline.kafka import admin as python_admin

_PARTITIONS = 6
_RETRY_S = 180.0
_AT_ONCE_S = 60.0
"""Whoever waits until a leader is back waits three times as long; no machine is as slow as that."""
_OFFSETS = "__consumer_offsets"
_COORDINATORS = 3
_SERVED_S = 30.0
_PAUSE_S = 0.1
"""How many coordinators of a group die at most, and how long each successor has before it is the next; asked in between."""


def test_partitions_of_a_dead_broker_are_named_and_come_back(
    three_brokers: Cluster, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    monkeypatch.setattr(python_admin, "RETRY_S", _RETRY_S)
    broker = connect(three_brokers.bootstrap)
    admin, topic = broker.admin(), fresh("lead")

    def leaderless() -> frozenset[int]:
        began_s = time.monotonic()
        # A node that has not heard of the new topic yet may answer.
        info = until(lambda: admin.topics([topic])[topic])
        assert time.monotonic() - began_s < _AT_ONCE_S
        assert info.partitions == _PARTITIONS
        return info.leaderless

    def named_as_dead() -> frozenset[int]:
        try:
            return leaderless()
        except BrokerError:
            return frozenset()  # the question was on its way to the broker that died

    node = three_brokers.nodes[1]
    try:
        admin.create_topic(NewTopic(topic, _PARTITIONS, 1, {"min.insync.replicas": "1"}))
        assert leaderless() == frozenset()
        all_ = [Partition(topic, number) for number in range(_PARTITIONS)]
        reader = reader_at(broker, *all_)
        node.kill()
        began_s = time.monotonic()
        assert [reader.position(partition) for partition in all_] == [0] * _PARTITIONS
        with suppress(AbortableError):
            reader.end_offsets(all_)
        assert time.monotonic() - began_s < _AT_ONCE_S
        dead = until(named_as_dead)
        assert 0 < len(dead) < _PARTITIONS
        three_brokers.restart(1)
        until(lambda: not leaderless())
    finally:
        if not node.running():
            three_brokers.restart(1)


def test_offsets_of_a_group_are_told_again_when_its_coordinator_has_died(
    three_brokers: Cluster, connect: Connect
) -> None:
    """kafka-python remembered the first coordinator for good.

    A broker that fails to load its part of the offsets topic is named as coordinator and refuses all requests until
    the next election; a busy machine sees that once in some hundred elections. librdkafka is the witness: while it is
    refused too, nobody can be told anything, and that coordinator dies next.
    """
    broker = connect(three_brokers.bootstrap)
    admin, topic, group = broker.admin(), fresh("t"), fresh("g")
    held = {Partition(topic, 0): Committed(0, "mark")}
    witness = stranger.admin(three_brokers.bootstrap)
    said: list[object] = []

    def told() -> bool:
        try:
            said.append(admin.group_offsets(group))
        except BrokerError as error:
            said.append(error)
        return said[-1] == held

    def is_served() -> bool:
        try:
            return bool(stranger.committed(witness, group))
        except stranger.KafkaException:
            return False

    admin.create_topic(NewTopic(topic, 1, 3))
    # The coordinator may not have heard of the new topic yet.
    until_done(lambda: admin.set_group_offsets(group, held))
    assert told()
    for _ in range(_COORDINATORS):
        number = _coordinator_id(witness, group) - 1
        three_brokers.nodes[number].kill()
        try:
            tried_until_s = time.monotonic() + _SERVED_S
            while not (told() or is_served() or time.monotonic() > tried_until_s):
                time.sleep(_PAUSE_S)
            if told() or is_served():
                assert until(told, lambda: f"{len(said)} answers, the last one: {said[-1]}")
                return
        finally:
            three_brokers.restart(number)
    raise AssertionError(f"{_COORDINATORS} coordinators serve nobody; the last answer: {said[-1]}")


def _coordinator_id(witness: stranger.AdminClient, group: str) -> int:
    """The node that leads a group's part of the offsets topic, where it is one that lives."""
    parts = witness.list_topics(_OFFSETS, timeout=30).topics[_OFFSETS].partitions
    hashed = 0
    for char in group:
        hashed = (hashed * 31 + ord(char)) & 0xFFFFFFFF
    # Java's hash of the name, without its sign.
    return int(parts[(hashed & 0x7FFFFFFF) % len(parts)].leader)
