"""What an error of confluent means for a login."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaException

from tests.service.running import wait_for
from twinsieve.pipeline.broker.records import BrokerError, FatalError
from twinsieve.pipeline.kafka.confluent.options import ERRORS, ClientEvents


def test_a_token_that_cannot_be_had_is_no_refusal() -> None:
    """Else a process that is starting ended, as if somebody had to grant it something."""
    asked: list[str] = []

    def ends_at_once(config: str) -> tuple[str, float]:
        asked.append(config)
        if len(asked) > 1:
            raise BrokerError("token endpoint: away", retryable=True)
        return "abc", time.time() + 2.0

    events = ClientEvents()
    options = {
        "bootstrap.servers": "127.0.0.1:1",
        "group.id": "g",
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": ends_at_once,
    }
    consumer = Consumer({**options, **events.options()})

    def is_told() -> bool:
        consumer.consume(1, 0.1)
        return events.fatal is not None

    wait_for(is_told, "the end of the token")
    consumer.close()
    assert events.fatal is not None
    error = ERRORS.translated(KafkaException(events.fatal), "reading")
    assert isinstance(error, FatalError)
    assert not error.denied
