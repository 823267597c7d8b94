"""`ports.Broker` on kafka-python, the default library."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from twinsieve.pipeline.kafka.broker import CONNECT_TIMEOUT_S, KafkaBroker
from twinsieve.pipeline.kafka.kafka_python.admin import PythonAdmin
from twinsieve.pipeline.kafka.kafka_python.group_consumer import PythonGroupConsumer
from twinsieve.pipeline.kafka.kafka_python.options import common_options, warn_without_crc32c
from twinsieve.pipeline.kafka.kafka_python.producers import PythonIdempotentProducer
from twinsieve.pipeline.kafka.kafka_python.reading import PythonReader
from twinsieve.pipeline.kafka.kafka_python.transactions import PythonTransactionalProducer
from twinsieve.pipeline.settings.model import KafkaSettings


class PythonBroker(KafkaBroker):
    """Makes kafka-python clients.

    connect_timeout_s: how long a new client tries to reach a broker
    """

    def __init__(
        self, settings: KafkaSettings, client_id: str, connect_timeout_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        options = common_options(settings, client_id, connect_timeout_s)
        super().__init__(settings, options, partial(PythonAdmin, settings, options), nulls=False)
        warn_without_crc32c()

    def group_consumer(
        self, group: str, topics: Sequence[str], member: str | None = None
    ) -> PythonGroupConsumer:
        self._shared_admin().require(topics, ("READ",))
        return self._kept(PythonGroupConsumer(self._access, group, topics, member))

    def reader(self) -> PythonReader:
        return self._kept(PythonReader(self._access))

    def appender(self, topics: Collection[str] = ()) -> PythonIdempotentProducer:
        return self._kept(PythonIdempotentProducer(self._plain, topics))

    def transactor(self, transactional_id: str, topics: Collection[str] = ()) -> PythonTransactionalProducer:
        return self._kept(PythonTransactionalProducer(self._access, transactional_id, topics))
