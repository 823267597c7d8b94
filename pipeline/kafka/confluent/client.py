"""`ports.Broker` on confluent-kafka (an extra), the fast client."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from twinsieve.pipeline.kafka.broker import CONNECT_TIMEOUT_S, KafkaBroker
from twinsieve.pipeline.kafka.confluent.admin import ConfluentAdmin
from twinsieve.pipeline.kafka.confluent.group_consumer import ConfluentGroupConsumer
from twinsieve.pipeline.kafka.confluent.options import common_options
from twinsieve.pipeline.kafka.confluent.producers import ConfluentIdempotentProducer
from twinsieve.pipeline.kafka.confluent.reader import ConfluentReader
from twinsieve.pipeline.kafka.confluent.transactions import ConfluentTransactionalProducer
from twinsieve.pipeline.kafka.leaving import GroupAdmin
from twinsieve.pipeline.settings.model import KafkaSettings


class ConfluentBroker(KafkaBroker[ConfluentAdmin]):
    """Makes confluent-kafka clients.

    make_group_admin: makes a client for what librdkafka cannot do: take a static member out of its group,
        and list a group's offsets
    connect_timeout_s: how long the first client tries to reach a broker at all
    """

    def __init__(
        self,
        settings: KafkaSettings,
        client_id: str,
        make_group_admin: Callable[[], GroupAdmin],
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        super().__init__(settings, common_options(settings, client_id), nulls=True)
        self._make_group_admin = make_group_admin
        self._connect_timeout_s = connect_timeout_s

    def group_consumer(
        self, group: str, topics: Sequence[str], member: str | None = None
    ) -> ConfluentGroupConsumer:
        self._shared_admin().require(topics, ("READ",))
        return self._kept(ConfluentGroupConsumer(self._access, group, topics, member))

    # librdkafka's other clients connect in the background and never say that they could not; the admin client
    # asks a broker before it is there.

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

    def _make_admin(self) -> ConfluentAdmin:
        access = self._access
        return ConfluentAdmin(
            access.settings, access.options, self._make_group_admin, self._connect_timeout_s
        )

    def _new_group_admin(self) -> GroupAdmin:
        return self._kept(self._make_group_admin())
