"""What an error of confluent means for a login."""

from __future__ import annotations

import socket
import struct
import threading
import time

from confluent_kafka import Consumer, KafkaError, KafkaException

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


def test_a_connection_that_is_lost_during_a_login_is_no_refusal() -> None:
    """librdkafka reports it with the code of a refused login."""
    events = ClientEvents()
    told: list[KafkaError] = []

    def error(reported: KafkaError) -> None:
        told.append(reported)
        events(reported)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_hang_up_on_logins, args=(server,), daemon=True).start()
        options = {
            "bootstrap.servers": f"127.0.0.1:{server.getsockname()[1]}",
            "group.id": "g",
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "u",
            "sasl.password": "p",
        }
        consumer = Consumer({**options, **events.options(), "error_cb": error})

        def is_told() -> bool:
            consumer.consume(1, 0.1)
            return any(one.code() == KafkaError._AUTHENTICATION for one in told)

        wait_for(is_told, "the report of the lost connection")
        consumer.close()
    assert events.fatal is None
    lost = next(one for one in told if one.code() == KafkaError._AUTHENTICATION)
    translated = ERRORS.translated(KafkaException(lost), "reading")
    assert translated.retryable
    assert not isinstance(translated, FatalError)


def _hang_up_on_logins(server: socket.socket) -> None:
    """Be a broker that tells each client its requests, and closes the connection at the next one."""
    asks_for_requests, login, metadata = 18, 17, 3
    requests = (asks_for_requests, login, metadata)
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection, connection.makefile("rb") as received:
            while size := received.read(4):
                key, version, correlation = struct.unpack_from(
                    ">hhi", received.read(*struct.unpack(">i", size))
                )
                if key != asks_for_requests:
                    break
                # Error 35 makes the client ask again with version 0, whose answer is the simplest.
                answer = struct.pack(">ihi", correlation, 35 if version else 0, len(requests))
                answer += b"".join(struct.pack(">hhh", each, 0, 1) for each in requests)
                connection.sendall(struct.pack(">i", len(answer)) + answer)
