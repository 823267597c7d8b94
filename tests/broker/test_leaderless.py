"""A description of a topic names its partitions without a leader, at once, with both clients."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tests.broker.cluster import Cluster
from tests.broker.worlds import fresh, until
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import AbortableError, BrokerError, Committed, Partition
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.kafka.admin import RETRY_S
from twinsieve.pipeline.kafka.confluent import admin as confluent_admin
from twinsieve.pipeline.kafka.confluent.admin import ConfluentAdmin
from twinsieve.pipeline.kafka.kafka_python import admin as python_admin
from twinsieve.pipeline.settings.model import KafkaSettings

_PARTITIONS = 6
_RETRY_S = 180.0
_AT_ONCE_S = 60.0
"""Whoever waits until a leader is back waits three times as long; no machine is as slow as that."""


@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
def test_partitions_of_a_dead_broker_are_named_and_come_back(
    three_brokers: Cluster, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (confluent_admin, python_admin):
        monkeypatch.setattr(module, "RETRY_S", _RETRY_S)
    broker = connect(KafkaSettings.model_validate({"client": client, "bootstrap": three_brokers.bootstrap}))
    admin, topic = broker.admin(), fresh("lead")

    def leaderless() -> frozenset[int]:
        began_s = time.monotonic()
        info = admin.topics([topic])[topic]
        assert time.monotonic() - began_s < _AT_ONCE_S
        assert info is not None
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
        reader = broker.reader()
        all_ = [Partition(topic, number) for number in range(_PARTITIONS)]
        reader.assign(all_)
        for partition in all_:
            reader.seek(partition, 0)
        node.kill()
        began_s = time.monotonic()
        assert [reader.position(partition) for partition in all_] == [0] * _PARTITIONS
        with suppress(AbortableError):
            reader.end_offsets(all_)
        assert time.monotonic() - began_s < _AT_ONCE_S
        dead = until(named_as_dead)
        assert 0 < len(dead) < _PARTITIONS
        node.start()
        node.wait_ready()
        until(lambda: not leaderless())
    finally:
        broker.close()
        if not node.running():
            node.start()
            node.wait_ready()


def test_offsets_of_a_group_are_told_again_when_its_coordinator_has_died(
    three_brokers: Cluster, client: str
) -> None:
    """kafka-python remembered the first coordinator for good."""
    broker = connect(KafkaSettings.model_validate({"client": client, "bootstrap": three_brokers.bootstrap}))
    admin, topic, group = broker.admin(), fresh("t"), fresh("g")
    held = {Partition(topic, 0): Committed(0, "mark")}

    def told() -> bool:
        try:
            return admin.group_offsets(group) == held
        except BrokerError:
            return False

    admin.create_topic(NewTopic(topic, 1, 3))
    admin.set_group_offsets(group, held)
    assert told()
    raw = AdminClient({"bootstrap.servers": three_brokers.bootstrap})
    described = raw.describe_consumer_groups([group], request_timeout=30)[group].result()
    node = three_brokers.nodes[described.coordinator.id - 1]
    node.kill()
    try:
        assert until(told)
    finally:
        broker.close()
        node.start()
        node.wait_ready()


def test_a_new_client_asks_another_broker_when_one_just_died(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka waits for the controller it knows of, which any broker may be; others answer meanwhile."""
    broker = connect(KafkaSettings.model_validate({"client": "confluent", "bootstrap": bootstrap}))
    admin, topic = broker.admin(), fresh("asked")
    assert isinstance(admin, ConfluentAdmin)
    before = admin._client
    waited: list[float] = []

    def waits_for_the_dead(*_: object, request_timeout: float, **__: object) -> object:
        waited.append(request_timeout)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "Timed out waiting for controller"))

    try:
        admin.create_topic(NewTopic(topic, 1))
        monkeypatch.setattr(before, "describe_topics", waits_for_the_dead, raising=False)
        assert admin.topics([topic])[topic] is not None
    finally:
        broker.close()
    assert waited
    assert max(waited) < RETRY_S
    assert admin._client is not before
