"""An app may change its Kafka client: what one wrote to the broker, the other one reads."""

from __future__ import annotations

import pytest

from tests.broker.conftest import CLIENTS
from tests.broker.worlds import KafkaWorld, assigned, fresh, make_topic, until
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
