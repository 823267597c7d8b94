"""`ports.Broker` for Kafka: the part that both client libraries share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.size_limits import Limits
from twinsieve.pipeline.settings.model import KafkaSettings

CONNECT_TIMEOUT_S = 15.0

C = TypeVar("C", bound=Client)


class Access:
    """What every client of a process gets when it is made.

    options: the library's options that consumers, producers and admin clients share
    admin: returns the administration client of the process, and connects it at the first call
    clock: the broker's clock, as far as the clients have learned it from answers
    limits: the size and time limits of topics; nulls: as in `Limits`
    """

    def __init__(
        self,
        settings: KafkaSettings,
        options: Mapping[str, Any],
        admin: Callable[[], KafkaAdmin],
        clock: BrokerClock,
        *,
        nulls: bool,
    ) -> None:
        self.settings = settings
        self.options = options
        self.admin = admin
        self.clock = clock
        self.limits = Limits(admin, clock, settings.message_bytes, settings.compression, nulls=nulls)


class KafkaBroker:
    """Keeps a list of the clients made with one set of settings, and closes them. Subclasses make them.

    make_admin: returns a new administration client that has reached a broker
    """

    def __init__(
        self,
        settings: KafkaSettings,
        options: Mapping[str, Any],
        make_admin: Callable[[], KafkaAdmin],
        *,
        nulls: bool,
    ) -> None:
        self.clock = BrokerClock(time.monotonic)
        # The blocks that roles send to each other are already compressed where that helps (docs/WIRE.md).
        plain = settings.model_copy(update={"compression": "none"})
        self._access, self._plain = (
            Access(variant, options, self._shared_admin, self.clock, nulls=nulls)
            for variant in (settings, plain)
        )
        self._clients: list[Client] = []
        self._make_admin = make_admin
        self._own_admin: KafkaAdmin | None = None

    def admin(self) -> Admin:
        return self._kept(self._make_admin())

    def close(self) -> None:
        for client in reversed(self._clients):
            client.close()
        self._clients.clear()
        if self._own_admin is not None:
            self._own_admin.close()
            self._own_admin = None

    def _kept(self, client: C) -> C:
        # Drop closed clients: a process that runs for months makes new clients at every rebalance.
        self._clients = [client for client in self._clients if not client.closed]
        self._clients.append(client)
        return client

    def _shared_admin(self) -> KafkaAdmin:
        if self._own_admin is None:
            self._own_admin = self._make_admin()
        return self._own_admin
