"""`ports.Broker` on kafka-python, the default client."""

from __future__ import annotations

from collections.abc import Sequence

from twinsieve.pipeline.kafka.broker import CONNECT_TIMEOUT_S, KafkaBroker
from twinsieve.pipeline.kafka.kafka_python.admin import PythonAdmin
from twinsieve.pipeline.kafka.kafka_python.group_consumer import PythonGroupConsumer
from twinsieve.pipeline.kafka.kafka_python.options import common_options, warn_without_crc32c
from twinsieve.pipeline.kafka.kafka_python.producers import PythonIdempotentProducer
from twinsieve.pipeline.kafka.kafka_python.reading import PythonReader
from twinsieve.pipeline.kafka.kafka_python.transactions import PythonTransactionalProducer
from twinsieve.pipeline.settings.model import KafkaSettings


def make_admin(settings: KafkaSettings, client_id: str) -> PythonAdmin:
    """An administration client on its own. raises: BrokerError"""
    return PythonAdmin(settings, common_options(settings, client_id, CONNECT_TIMEOUT_S))


class PythonBroker(KafkaBroker[PythonAdmin]):
    """Makes kafka-python clients.

    connect_timeout_s: how long a new client tries to reach a broker at all
    """

    def __init__(
        self, settings: KafkaSettings, client_id: str, connect_timeout_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        super().__init__(settings, null_headers=False, bare_records=False)
        self._options = common_options(settings, client_id, connect_timeout_s)
        warn_without_crc32c()

    def _make_group_consumer(
        self, group: str, topics: Sequence[str], member: str | None
    ) -> PythonGroupConsumer:
        return PythonGroupConsumer(self._settings, self._options, self._shared_admin, group, topics, member)

    def _make_reader(self) -> PythonReader:
        return PythonReader(self._settings, self._options, self._shared_admin)

    def _make_appender(self) -> PythonIdempotentProducer:
        return PythonIdempotentProducer(self._settings, self._options, self._limits)

    def _make_transactor(self, transactional_id: str) -> PythonTransactionalProducer:
        return PythonTransactionalProducer(self._settings, self._options, transactional_id, self._limits)

    def _make_admin(self) -> PythonAdmin:
        return PythonAdmin(self._settings, self._options)
