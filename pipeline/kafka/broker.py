"""`ports.Broker` on kafka-python."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TypeVar

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.kafka.access import Access
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.group_consumer import KafkaGroupConsumer
from twinsieve.pipeline.kafka.options import common_options, warn_without_crc32c
from twinsieve.pipeline.kafka.producers import KafkaIdempotentProducer
from twinsieve.pipeline.kafka.reading import KafkaReader
from twinsieve.pipeline.kafka.transactions import KafkaTransactionalProducer
from twinsieve.pipeline.settings.model import KafkaSettings

CONNECT_TIMEOUT_S = 15.0

C = TypeVar("C", bound=Client)


class KafkaBroker:
    """Makes clients with one set of settings, keeps a list of them, and closes them. It sends nothing yet.

    client_id: name of this process in the broker's logs and quotas
    connect_timeout_s: how long a new client tries to reach a broker
    raises: ConfigError if a secret or certificate file cannot be used, or the library's version is another
    """

    def __init__(
        self,
        settings: KafkaSettings,
        client_id: str = "twinsieve",
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self._settings = settings
        self._options = common_options(settings, client_id, connect_timeout_s)
        self.clock = BrokerClock(time.monotonic)
        # The blocks that roles send to each other are already compressed where that helps (docs/WIRE.md).
        plain = settings.model_copy(update={"compression": "none"})
        self._access, self._plain = (
            Access(variant, self._options, self._shared_admin, self.clock) for variant in (settings, plain)
        )
        self._clients: list[Client] = []
        self._own_admin: KafkaAdmin | None = None
        warn_without_crc32c()

    def group_consumer(
        self, group: str, topics: Sequence[str], member: str | None = None
    ) -> KafkaGroupConsumer:
        self._shared_admin().require(topics, ("READ",))
        return self._kept(KafkaGroupConsumer(self._access, group, topics, member))

    def reader(self) -> KafkaReader:
        return self._kept(KafkaReader(self._access))

    def appender(self, topics: Collection[str] = ()) -> KafkaIdempotentProducer:
        return self._kept(KafkaIdempotentProducer(self._plain, topics))

    def transactor(self, transactional_id: str, topics: Collection[str] = ()) -> KafkaTransactionalProducer:
        return self._kept(KafkaTransactionalProducer(self._access, transactional_id, topics))

    def admin(self) -> Admin:
        return self._kept(self._new_admin())

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

    def _new_admin(self) -> KafkaAdmin:
        return KafkaAdmin(self._settings, self._options)

    def _shared_admin(self) -> KafkaAdmin:
        if self._own_admin is None:
            self._own_admin = self._new_admin()
        return self._own_admin
