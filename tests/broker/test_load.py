"""What the measurements put in is known by its place in the input."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Producer

from tests.broker import load as kafka_load
from tests.broker.load import PARTITIONS, Load
from tests.broker.worlds import fresh
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.settings.model import KafkaSettings

Told = Callable[[KafkaError | None, object], None]


class _NoOffset:
    """A delivery report of a message that the broker had before."""

    def partition(self) -> int:
        return 0

    def offset(self) -> None:
        return None


class _Forgetful(Producer):
    """Every third message is told to be there, but not where."""

    def produce(self, topic: str, value: bytes, key: bytes, *, partition: int, on_delivery: Told) -> None:
        def told(error: KafkaError | None, message: object) -> None:
            on_delivery(error, message if int(key) % 3 else _NoOffset())

        super().produce(topic, value, key, partition, on_delivery=told)


def test_a_message_that_is_acknowledged_without_its_place_is_found(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, messages = fresh("load"), 1_000
    broker = connect(KafkaSettings(bootstrap=bootstrap))
    broker.admin().create_topic(NewTopic(topic, PARTITIONS))
    monkeypatch.setattr(kafka_load, "Producer", _Forgetful)
    load = Load(bootstrap, topic, messages)
    load.run()
    each = messages // PARTITIONS
    assert load.failed == 0
    assert load.sent_s.keys() == {(number, at) for number in range(PARTITIONS) for at in range(each)}
    broker.close()
