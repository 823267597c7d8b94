"""`ports.Broker` on confluent-kafka (an extra), the fast client."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

    leaver: a client that can take a static member out of its group, for which librdkafka has no request
    connect_timeout_s: how long the first client tries to reach a broker at all
    """

    def __init__(
        self,
        settings: KafkaSettings,
        client_id: str,
        leaver: Callable[[], GroupAdmin],
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        super().__init__(settings, null_headers=True, bare_records=True)
        self._make_leaver = leaver
        self._connect_timeout_s = connect_timeout_s
        self._options = common_options(settings, client_id)

    def _reach(self) -> None:
        # The other clients connect in the background and never say that they could not; this one asks.
        self._shared_admin()

    def _make_group_consumer(
        self, group: str, topics: Sequence[str], member: str | None
    ) -> ConfluentGroupConsumer:
        return ConfluentGroupConsumer(
            self._settings, self._options, self._shared_admin, self._leaver, group, topics, member
        )

    def _make_reader(self) -> ConfluentReader:
        return ConfluentReader(self._settings, self._options, self._shared_admin)

    def _make_appender(self) -> ConfluentIdempotentProducer:
        return ConfluentIdempotentProducer(self._settings, self._options, self._limits)

    def _make_transactor(self, transactional_id: str) -> ConfluentTransactionalProducer:
        return ConfluentTransactionalProducer(self._settings, self._options, transactional_id, self._limits)

    def _make_admin(self) -> ConfluentAdmin:
        return ConfluentAdmin(self._settings, self._options, self._connect_timeout_s)

    def _leaver(self) -> GroupAdmin:
        return self._kept(self._make_leaver())
