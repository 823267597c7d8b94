"""An app may change its Kafka client: what one wrote to the broker, the other one reads."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient, TopicPartition, errors
from kafka.structs import OffsetAndMetadata

from tests.broker.conftest import CLIENTS
from tests.broker.worlds import KafkaWorld, assigned, fresh, make_topic, until, until_done
from twinsieve.pipeline.broker.mark import read_mark
from twinsieve.pipeline.broker.records import Committed, Partition


@pytest.mark.parametrize("other", CLIENTS)
def test_committed_offsets_are_what_any_client_wrote(client: str, other: str, bootstrap: str) -> None:
    world, others = KafkaWorld(client, bootstrap), KafkaWorld(other, bootstrap)
    broker, reading = world.broker(), others.broker()
    log, group = Partition(make_topic(broker), 0), fresh("g")
    consumer = broker.group_consumer(group, [log.topic])
    transactor = broker.transactor(fresh("tx"))
    transactor.begin()
    transactor.send_offsets({log: Committed(0, "mark 12")}, assigned(consumer, 1).membership)
    transactor.commit()
    consumer.close()
    until(lambda: reading.admin().group_offsets(group) == {log: Committed(0, "mark 12")})
    successor = reading.group_consumer(group, [log.topic])
    assigned(successor, 1)
    assert successor.committed([log]) == {log: Committed(0, "mark 12")}
    world.close()
    others.close()


@pytest.mark.parametrize("other", CLIENTS)
def test_texts_of_any_length_are_read_as_an_admin_wrote_them(client: str, other: str, bootstrap: str) -> None:
    world, others = KafkaWorld(client, bootstrap), KafkaWorld(other, bootstrap)
    topic, group = make_topic(world.broker(), 100), fresh("g")
    held = {Partition(topic, length): Committed(0, "m" * length) for length in range(100)}
    until_done(lambda: world.broker().admin().set_group_offsets(group, held))
    consumer = others.broker().group_consumer(group, [topic])
    assigned(consumer, len(held))
    assert consumer.committed(list(held)) == held
    world.close()
    others.close()


def test_a_text_of_another_program_is_read_too(client: str, bootstrap: str) -> None:
    """Its end is lost with confluent-kafka, and foreign bytes follow it."""
    world = KafkaWorld(client, bootstrap)
    topic, group = make_topic(world.broker(), 100), fresh("g")
    theirs = KafkaAdminClient(bootstrap_servers=bootstrap)
    written = {
        TopicPartition(topic, number): OffsetAndMetadata(number, "é" * (number + 1), -1)
        for number in range(100)
    }
    until(lambda: set(theirs.alter_group_offsets(group, written).values()) == {errors.NoError})
    theirs.close()
    consumer = world.broker().group_consumer(group, [topic])
    assigned(consumer, len(written))
    committed = consumer.committed([Partition(topic, number) for number in range(100)])
    for partition, found in committed.items():
        assert found is not None
        assert found.offset == partition.number
        assert found.metadata.startswith("é" * (partition.number + 1))
        assert read_mark(found.metadata) is None
    world.close()
