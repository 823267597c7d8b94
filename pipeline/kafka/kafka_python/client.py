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

    def group_consumer(
        self, group: str, topics: Sequence[str], member: str | None = None
    ) -> PythonGroupConsumer:
        admin = self._shared_admin
        admin().require(topics, ("READ",))
        return self._kept(PythonGroupConsumer(self._settings, self._options, admin, group, topics, member))

    def reader(self) -> PythonReader:
        return self._kept(PythonReader(self._settings, self._options, self._shared_admin))

    def appender(self) -> PythonIdempotentProducer:
        return self._kept(PythonIdempotentProducer(self._plain, self._options, self._plain_limits))

    def transactor(self, transactional_id: str) -> PythonTransactionalProducer:
        made = PythonTransactionalProducer(self._settings, self._options, transactional_id, self._limits)
        return self._kept(made)

    def _make_admin(self) -> PythonAdmin:
        return PythonAdmin(self._settings, self._options)
