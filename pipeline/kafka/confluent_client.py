"""`ports.Broker` on confluent-kafka (an extra), the fast client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipeline.kafka.confluent_admin import ConfluentAdmin
from pipeline.kafka.confluent_consumers import ConfluentGroupConsumer, ConfluentReader
from pipeline.kafka.confluent_options import common_options
from pipeline.kafka.confluent_plain import ConfluentPlainTransactor
from pipeline.kafka.confluent_producers import ConfluentAppender
from pipeline.kafka.confluent_transactor import ConfluentTransactor
from pipeline.kafka.leaving import GroupAdmin
from pipeline.kafka.limits import Limits
from pipeline.ports import Admin, Appender, GroupConsumer, Reader, Transactor
from pipeline.settings import KafkaSettings

CONNECT_TIMEOUT_S = 15.0


class _Closable(Protocol):
    def close(self) -> None: ...


class ConfluentBroker:
    """Makes confluent-kafka clients that share one set of settings.

    connect_timeout_s: how long the first client tries to reach a broker at all
    """

    def __init__(
        self, settings: KafkaSettings, client_id: str, connect_timeout_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        self._settings = settings
        self._client_id = client_id
        self._connect_timeout_s = connect_timeout_s
        self._options = common_options(settings, client_id)
        self._made: list[_Closable] = []
        self._own_admin: ConfluentAdmin | None = None
        self._limits = Limits(
            self._shared_admin,
            settings.message_bytes,
            settings.compression,
            null_headers=True,
            bare_records=True,
        )

    def group_consumer(self, group: str, topics: Sequence[str], member: str | None = None) -> GroupConsumer:
        """As `ports.Broker.group_consumer`."""
        self._shared_admin().require(topics, ("READ",))
        consumer = ConfluentGroupConsumer(
            self._settings, self._options, self._shared_admin, self._leaver, group, topics, member
        )
        self._made.append(consumer)
        return consumer

    def reader(self) -> Reader:
        """As `ports.Broker.reader`."""
        self._shared_admin()
        reader = ConfluentReader(self._settings, self._options, self._shared_admin)
        self._made.append(reader)
        return reader

    def appender(self) -> Appender:
        """As `ports.Broker.appender`."""
        self._shared_admin()
        appender = ConfluentAppender(self._settings, self._options, self._limits)
        self._made.append(appender)
        return appender

    def transactor(self, transactional_id: str) -> Transactor:
        """As `ports.Broker.transactor`."""
        self._shared_admin()
        made: ConfluentTransactor | ConfluentPlainTransactor
        if self._settings.delivery == "exactly-once":
            made = ConfluentTransactor(self._settings, self._options, transactional_id, self._limits)
        else:
            made = ConfluentPlainTransactor(self._settings, self._options, self._limits)
        self._made.append(made)
        return made

    def admin(self) -> Admin:
        """As `ports.Broker.admin`."""
        admin = ConfluentAdmin(self._settings, self._options, self._connect_timeout_s)
        self._made.append(admin)
        return admin

    def close(self) -> None:
        """As `ports.Broker.close`."""
        for client in reversed(self._made):
            client.close()
        self._made.clear()
        if self._own_admin is not None:
            self._own_admin.close()
            self._own_admin = None

    def _leaver(self) -> GroupAdmin:
        # librdkafka has no request that takes a static member out of its group; the other client is loaded at
        # the end only, for every start waits for what is loaded.
        from pipeline.kafka.python_admin import PythonAdmin
        from pipeline.kafka.python_options import common_options as python_options

        options = python_options(self._settings, self._client_id, self._connect_timeout_s)
        admin = PythonAdmin(self._settings, options)
        self._made.append(admin)
        return admin

    def _shared_admin(self) -> ConfluentAdmin:
        # The other clients connect in the background and never say that they could not; this one asks.
        if self._own_admin is None:
            self._own_admin = ConfluentAdmin(self._settings, self._options, self._connect_timeout_s)
        return self._own_admin
