"""Every client takes what `kafka.options` allows, and works with it."""

from __future__ import annotations

import pytest

from tests.broker.worlds import fresh, make_topic, read_all
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.settings.client_options import ALLOWED, options_faults
from twinsieve.pipeline.settings.model import KafkaSettings

pytestmark = pytest.mark.needs("broker")


def test_all_clients_work_with_all_options(client: str, bootstrap: str) -> None:
    options = {
        name: str(values[-1] if isinstance(values, range) else values[0])
        for name, values in ALLOWED.items()
        if "." not in name or client == "confluent"
    }
    settings = KafkaSettings.model_validate({"client": client, "bootstrap": bootstrap, "options": options})
    assert list(options_faults(settings)) == []
    broker = connect(settings)
    try:
        topic = make_topic(broker)
        transactor = broker.transactor(fresh("tx"), [topic])
        transactor.begin()
        transactor.send(topic, 0, Messages([b"k"], [b"transacted"], [()], [-1]))
        transactor.commit()
        appender = broker.appender([topic])
        appender.append(Partition(topic, 0), Messages([b"k"], [b"appended"], [()], [-1]))
        while appender.confirm(0.1):
            pass
        assert read_all(broker, Partition(topic, 0)).values == [b"transacted", b"appended"]
        consumer = broker.group_consumer(fresh("group"), [topic])
        while not consumer.poll(0.1, 1).assignment:
            pass
    finally:
        broker.close()
