"""`ports.Broker` on either client library: what is common to both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from twinsieve.pipeline.broker.ports import Admin
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.kafka.client import Client
from twinsieve.pipeline.kafka.limits import Limits
from twinsieve.pipeline.settings.model import KafkaSettings

CONNECT_TIMEOUT_S = 15.0


class _Closable(Protocol):
    def close(self) -> None: ...


A = TypeVar("A", bound=KafkaAdmin)
C = TypeVar("C", bound=_Closable)


class KafkaBroker(ABC, Generic[A]):
    """Keeps the clients that it made with one set of settings, and closes them. Subclasses make them.

    null_headers, bare_records: as `Limits`
    """

    def __init__(self, settings: KafkaSettings, *, null_headers: bool, bare_records: bool) -> None:
        self._settings = settings
        # What roles write to each other is compressed already, as far as that pays (docs/WIRE.md).
        self._plain = settings.model_copy(update={"compression": "none"})
        self._made: list[_Closable] = []
        self._own_admin: A | None = None
        self._limits, self._plain_limits = (
            Limits(
                self._shared_admin,
                settings.message_bytes,
                each.compression,
                null_headers=null_headers,
                bare_records=bare_records,
            )
            for each in (settings, self._plain)
        )

    def admin(self) -> Admin:
        return self._kept(self._make_admin())

    def close(self) -> None:
        for client in reversed(self._made):
            client.close()
        self._made.clear()
        if self._own_admin is not None:
            self._own_admin.close()
            self._own_admin = None

    def _kept(self, client: C) -> C:
        # A process that lives for months makes new clients at every rebalance.
        self._made = [made for made in self._made if not (isinstance(made, Client) and made.closed)]
        self._made.append(client)
        return client

    def _shared_admin(self) -> A:
        if self._own_admin is None:
            self._own_admin = self._make_admin()
        return self._own_admin

    @abstractmethod
    def _make_admin(self) -> A: ...
