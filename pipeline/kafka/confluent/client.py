"""`ports.Broker` on confluent-kafka: the faster library, an optional dependency ("extra")."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from twinsieve.pipeline.kafka.broker import CONNECT_TIMEOUT_S, KafkaBroker
from twinsieve.pipeline.kafka.confluent.group_consumer import ConfluentGroupConsumer
from twinsieve.pipeline.kafka.confluent.options import common_options
from twinsieve.pipeline.kafka.confluent.producers import ConfluentIdempotentProducer
from twinsieve.pipeline.kafka.confluent.reader import ConfluentReader
from twinsieve.pipeline.kafka.confluent.transactions import ConfluentTransactionalProducer
from twinsieve.pipeline.kafka.kafka_python import options as python_options
from twinsieve.pipeline.kafka.kafka_python.admin import PythonAdmin
from twinsieve.pipeline.settings.model import KafkaSettings


class ConfluentBroker(KafkaBroker):
    """Makes confluent-kafka clients; their administration client is the one of kafka-python.

    librdkafka's admin client can neither remove a static member from its group nor return the size of a
    topic, and its request for a group's offsets may crash the process with SIGSEGV (librdkafka issue 5040).

    connect_timeout_s: how long the administration client tries to reach a broker
    """

    def __init__(
        self, settings: KafkaSettings, client_id: str, connect_timeout_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        asks = python_options.common_options(settings, client_id, connect_timeout_s)
        options = common_options(settings, client_id)
        super().__init__(settings, options, partial(PythonAdmin, settings, asks), nulls=True)

    def group_consumer(
        self, group: str, topics: Sequence[str], member: str | None = None
    ) -> ConfluentGroupConsumer:
        self._shared_admin().require(topics, ("READ",))
        return self._kept(ConfluentGroupConsumer(self._access, group, topics, member))

    # librdkafka's clients connect in the background and never report that they cannot. So the methods below
    # make the admin client first: its constructor fails if no broker can be reached.

    def reader(self) -> ConfluentReader:
        self._shared_admin()
        return self._kept(ConfluentReader(self._access))

    def appender(self, topics: Collection[str] = ()) -> ConfluentIdempotentProducer:
        self._shared_admin()
        return self._kept(ConfluentIdempotentProducer(self._plain, topics))

    def transactor(
        self, transactional_id: str, topics: Collection[str] = ()
    ) -> ConfluentTransactionalProducer:
        self._shared_admin()
        return self._kept(ConfluentTransactionalProducer(self._access, transactional_id, topics))
