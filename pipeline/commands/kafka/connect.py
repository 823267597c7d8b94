"""From settings to a broker: the one place that chooses the Kafka client."""

from __future__ import annotations

from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.settings.model import KafkaSettings, Settings
from twinsieve.stages.errors import UsageError


def connect_by_settings(settings: Settings) -> Broker:
    """A broker as the section `kafka` says, under the name of the app. raises: as `connect`"""
    return connect(settings.kafka, client_id=settings.app)


def connect(settings: KafkaSettings, client_id: str = "twinsieve") -> Broker:
    """A broker that talks through the client that the settings name; nothing is sent yet.

    client_id: shows in the broker's logs and quotas
    raises: UsageError when the client is not installed; ConfigError for an unreadable secret file
    """
    # Each client is imported only when it is asked for: confluent is an extra, and both are slow to load.
    if settings.client == "confluent":
        try:
            from twinsieve.pipeline.kafka.confluent.client import ConfluentBroker
        except ModuleNotFoundError as error:
            if error.name != "confluent_kafka":
                raise
            raise UsageError(
                "kafka.client is confluent, but confluent-kafka is not installed; "
                "run in a checkout: pip install '.[confluent]'"
            ) from error
        return ConfluentBroker(settings, client_id)
    from twinsieve.pipeline.kafka.kafka_python.client import PythonBroker

    return PythonBroker(settings, client_id)
