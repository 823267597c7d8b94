"""A consumer of confluent that does not join its group by itself, as librdkafka's do now and then."""

from __future__ import annotations

import logging
import time

import pytest

from tests.broker.worlds import KafkaWorld, assigned, fetched, fresh, make_topic, until, write
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.kafka.confluent import group_consumer


@pytest.mark.parametrize("member", ["m0", None])
def test_who_is_not_in_its_group_joins_with_a_new_client(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, member: str | None
) -> None:
    monkeypatch.setattr(group_consumer, "_JOIN_S", 2.0)
    world = KafkaWorld("confluent", bootstrap)
    broker = world.broker()
    log, group = Partition(make_topic(broker), 0), fresh("g")
    write(broker, log, [b"a"])
    consumer = broker.group_consumer(group, [log.topic], member)
    first = assigned(consumer, 1)
    # Behind its back: librdkafka gives the partition back, and joins no more.
    consumer._consumer.unsubscribe()  # type: ignore[attr-defined]
    until(lambda: not consumer.poll(0.1, 10).assignment)
    with caplog.at_level(logging.WARNING):
        second = assigned(consumer, 1)
    assert second.epoch > first.epoch
    assert "joining with a new client" in caplog.text
    consumer.seek(log, 0)
    assert fetched(consumer, 1)[0] == [b"a"]
    world.close()


def test_who_waits_for_other_members_keeps_its_client(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The group lists it, though it has no share for as long as the other does not poll."""
    world = KafkaWorld("confluent", bootstrap)
    broker = world.broker()
    log, group = Partition(make_topic(broker), 0), fresh("g")
    other = broker.group_consumer(group, [log.topic], "m0")
    assigned(other, 1)
    monkeypatch.setattr(group_consumer, "_JOIN_S", 1.0)
    consumer = broker.group_consumer(group, [log.topic], "m1")
    began_s = time.monotonic()
    with caplog.at_level(logging.WARNING):
        while time.monotonic() - began_s < 5.0:
            assert consumer.poll(0.1, 10).membership.generation == -1
    assert "joining with a new client" not in caplog.text
    world.close()
