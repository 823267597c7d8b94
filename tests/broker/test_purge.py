"""An appender that gives up keeps no other thread waiting."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import KafkaException

from tests.broker.worlds import messages
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.records import AbortableError, BrokerError, Partition
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.confluent import producers as confluent_producers
from twinsieve.pipeline.settings.model import KafkaSettings


class LookingUp:
    """A producer that takes nothing, while one of its threads looks up a name."""

    waited = False

    def __init__(self, _: object) -> None: ...

    def produce(self, *_: object, **__: object) -> None:
        raise KafkaException("refused")

    def poll(self, _: float) -> int:
        """Nothing to report."""
        return 0

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """As confluent-kafka 2.16 does it: `blocking` is the wrong way round."""
        if not blocking:
            LookingUp.waited = True


def test_an_appender_that_gives_up_waits_for_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Any:
        raise BrokerError("nobody to ask", retryable=True)

    monkeypatch.setattr(confluent_producers, "Producer", LookingUp)
    access = Access(KafkaSettings(), {}, nobody, BrokerClock(time.monotonic), nulls=True)
    appender = confluent_producers.ConfluentIdempotentProducer(access)
    with pytest.raises(AbortableError, match="refused"):
        appender.append(Partition("t", 0), messages([b"a"]))
    assert not LookingUp.waited
