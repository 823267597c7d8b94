"""`ports.Broker` on either client library: what is common to both."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.limits import Limits
from twinsieve.pipeline.settings.model import KafkaSettings

CONNECT_TIMEOUT_S = 15.0

C = TypeVar("C", bound=Client)


class Access:
    """What every client of a process is made with.

    options: of its library, that all kinds of client share; admin: the administration client of the process,
    connected at the first call; clock: the broker's, as the clients learn it; limits: of topics;
    nulls: as `Limits`
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
    """Keeps the clients that it made with one set of settings, and closes them. Subclasses make them.

    make_admin: an administration client that has reached a broker
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
        # What roles write to each other is compressed already, as far as that pays (docs/WIRE.md).
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
        # A process that lives for months makes new clients at every rebalance.
        self._clients = [client for client in self._clients if not client.closed]
        self._clients.append(client)
        return client

    def _shared_admin(self) -> KafkaAdmin:
        if self._own_admin is None:
            self._own_admin = self._make_admin()
        return self._own_admin
