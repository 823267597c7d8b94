"""`kafka.options`: those that are allowed reach both client libraries, and all others are refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient

from twinsieve.pipeline.kafka.confluent import options as confluent
from twinsieve.pipeline.kafka.confluent.producers import producer_options
from twinsieve.pipeline.kafka.confluent.reading import consumer_options
from twinsieve.pipeline.kafka.kafka_python import options as kafka_python
from twinsieve.pipeline.settings.client_options import ALLOWED, options_faults
from twinsieve.pipeline.settings.model import KafkaSettings


def _kafka(options: Mapping[str, object], client: str = "confluent") -> KafkaSettings:
    return KafkaSettings.model_validate({"client": client, "options": options})


def _faults(options: Mapping[str, object], client: str = "confluent") -> dict[str, str]:
    return dict(options_faults(_kafka(options, client)))


def _bounds(name: str) -> list[str]:
    values = ALLOWED[name]
    return [str(values[0]), str(values[-1])]


@pytest.mark.parametrize("name", [name for name in ALLOWED if "." in name])
def test_librdkafka_takes_each_of_its_options(name: str) -> None:
    for value in _bounds(name):
        settings = _kafka({name: value})
        assert list(options_faults(settings)) == []
        given = confluent.common_options(settings, "c")
        assert given[name] == value
        Consumer({**given, **consumer_options(settings), "group.id": "g"}).close()
        Producer({**given, **producer_options(settings)})


@pytest.mark.parametrize("name", [name for name in ALLOWED if "." not in name])
def test_kafka_python_knows_each_of_its_options(name: str) -> None:
    assert all(name in client.DEFAULT_CONFIG for client in (KafkaConsumer, KafkaProducer, KafkaAdminClient))
    for client in ("kafka-python", "confluent"):
        for value in _bounds(name):
            settings = _kafka({name: value}, client)
            assert list(options_faults(settings)) == []
            given = kafka_python.common_options(settings, "c", 1.0)
            assert given[name] == (int(value) if value.isdigit() else value)
            assert name not in confluent.common_options(settings, "c")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("isolation.level", "aborted"),
        ("isolation_level", "aborted"),
        ("enable.auto.commit", "passed over"),
        ("AUTO.OFFSET.RESET", "passed over"),
        ("acks", "lost"),
        ("enable.idempotence", "twice"),
        ("max_in_flight_requests_per_connection", "order"),
        ("partitioner", "another partition"),
        ("group.instance.id", "place in the group"),
        ("queued.max.messages.kbytes", "memory"),
        ("fetch_max_bytes", "memory"),
        ("sasl.password", "kafka.security"),
        ("ssl_context", "kafka.security"),
        ("debug", "secrets"),
        ("client.rack", "not tested"),
        ("statistics.interval.ms", "nobody has tried"),
    ],
)
def test_others_are_refused_with_what_they_would_break(name: str, why: str) -> None:
    assert why in _faults({name: "1"})[f"kafka.options.{name}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("socket.keepalive.enable", "yes"),
        ("broker.address.family", "v5"),
        ("connections.max.idle.ms", "-1"),
        ("connections.max.idle.ms", "59999"),
        ("connections.max.idle.ms", "９９９９９９"),
        ("send_buffer_bytes", "99999999999999999999"),
        ("send_buffer_bytes", "64KiB"),
    ],
)
def test_wrong_values_are_refused_with_the_right_ones(name: str, value: str) -> None:
    assert "; use " in _faults({name: value})[f"kafka.options.{name}"]


def test_an_option_of_the_other_library_is_refused() -> None:
    (fault,) = _faults({"socket.keepalive.enable": "true"}, "kafka-python").values()
    assert "librdkafka" in fault
