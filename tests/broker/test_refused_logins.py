"""What a connection that is lost during a login means."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from twinsieve.pipeline.broker.records import BrokerError, FatalError
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.settings.model import KafkaSettings

_ASKS_FOR_REQUESTS, _LOGIN, _METADATA = 18, 17, 3


def test_a_connection_that_is_lost_during_a_login_is_no_refusal() -> None:
    """Else a process that is starting ended, as if somebody had to grant it something."""
    asked: list[int] = []
    security = {"protocol": "sasl_plaintext", "username": "u", "password": "p"}
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_hang_up_on_logins, args=(server, asked), daemon=True).start()
        bootstrap = f"127.0.0.1:{server.getsockname()[1]}"
        settings = KafkaSettings.model_validate({"bootstrap": bootstrap, "security": security})
        with pytest.raises(BrokerError, match="closes the connection at login") as lost:
            KafkaBroker(settings, "test", 2.5).admin()
    assert _LOGIN in asked
    assert lost.value.retryable
    assert not isinstance(lost.value, FatalError)


def _hang_up_on_logins(server: socket.socket, asked: list[int]) -> None:
    """Be a broker that tells each client its requests, and closes the connection at the next one, which is noted."""
    requests = (_ASKS_FOR_REQUESTS, _LOGIN, _METADATA)
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
                asked.append(key)
                if key != _ASKS_FOR_REQUESTS:
                    break
                # Error 35 makes the client ask again with version 0, whose answer is the simplest.
                answer = struct.pack(">ihi", correlation, 35 if version else 0, len(requests))
                answer += b"".join(struct.pack(">hhh", each, 0, each == _LOGIN) for each in requests)
                connection.sendall(struct.pack(">i", len(answer)) + answer)
