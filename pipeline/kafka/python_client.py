"""`ports.Broker` on kafka-python, the default client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipeline.kafka.limits import Limits
from pipeline.kafka.python_admin import PythonAdmin
from pipeline.kafka.python_consumers import PythonGroupConsumer
from pipeline.kafka.python_options import common_options, warn_without_crc32c
from pipeline.kafka.python_plain import PythonPlainTransactor
from pipeline.kafka.python_producers import PythonAppender
from pipeline.kafka.python_reading import PythonReader
from pipeline.kafka.python_transactor import PythonTransactor
from pipeline.ports import Admin, Appender, GroupConsumer, Reader, Transactor
from pipeline.settings import KafkaSettings

CONNECT_TIMEOUT_S = 15.0


class _Closable(Protocol):
    def close(self) -> None: ...


class PythonBroker:
    """Makes kafka-python clients that share one set of settings.

    connect_timeout_s: how long a new client tries to reach a broker at all
    """

    def __init__(
        self, settings: KafkaSettings, client_id: str, connect_timeout_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        self._settings = settings
        self._options = common_options(settings, client_id, connect_timeout_s)
        self._made: list[_Closable] = []
        self._own_admin: PythonAdmin | None = None
        self._limits = Limits(
            self._shared_admin,
            settings.message_bytes,
            settings.compression,
            null_headers=False,
            bare_records=False,
        )
        warn_without_crc32c()

    def group_consumer(self, group: str, topics: Sequence[str], member: str | None = None) -> GroupConsumer:
        """As `ports.Broker.group_consumer`."""
        self._shared_admin().require(topics, ("READ",))
        consumer = PythonGroupConsumer(
            self._settings, self._options, self._shared_admin, group, topics, member
        )
        self._made.append(consumer)
        return consumer

    def reader(self) -> Reader:
        """As `ports.Broker.reader`."""
        reader = PythonReader(self._settings, self._options, self._shared_admin)
        self._made.append(reader)
        return reader

    def appender(self) -> Appender:
        """As `ports.Broker.appender`."""
        appender = PythonAppender(self._settings, self._options, self._limits)
        self._made.append(appender)
        return appender

    def transactor(self, transactional_id: str) -> Transactor:
        """As `ports.Broker.transactor`."""
        made: PythonTransactor | PythonPlainTransactor
        if self._settings.delivery == "exactly-once":
            made = PythonTransactor(self._settings, self._options, transactional_id, self._limits)
        else:
            made = PythonPlainTransactor(self._settings, self._options, self._limits)
        self._made.append(made)
        return made

    def admin(self) -> Admin:
        """As `ports.Broker.admin`."""
        admin = PythonAdmin(self._settings, self._options)
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

    def _shared_admin(self) -> PythonAdmin:
        if self._own_admin is None:
            self._own_admin = PythonAdmin(self._settings, self._options)
        return self._own_admin
