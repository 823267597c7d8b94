"""From settings to a broker: the one place that chooses the Kafka client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import KafkaSettings, Settings

if TYPE_CHECKING:
    from twinsieve.pipeline.kafka.confluent.client import ConfluentBroker
    from twinsieve.pipeline.kafka.kafka_python.client import PythonBroker


def connect_by_settings(settings: Settings) -> ConfluentBroker | PythonBroker:
    """A broker with the settings of section `kafka`, under the name of the app. raises: as `connect`"""
    return connect(settings.kafka, client_id=settings.app)


def connect(settings: KafkaSettings, client_id: str = "twinsieve") -> ConfluentBroker | PythonBroker:
    """A broker that talks through the client that the settings name; nothing is sent yet.

    client_id: shows in the broker's logs and quotas
    raises: ConfigError when the client is not installed, and for an unreadable secret file
    """
    # Each client is imported only when it is needed: confluent is an extra, and both are slow to load.
    if settings.client == "confluent":
        try:
            from twinsieve.pipeline.kafka.confluent.client import ConfluentBroker
        except ModuleNotFoundError as error:
            if error.name != "confluent_kafka":
                raise
            raise ConfigError(
                [
                    "twinsieve: kafka.client is confluent, but confluent-kafka is not installed; "
                    "run in a checkout: pip install '.[confluent]'"
                ]
            ) from error
        return ConfluentBroker(settings, client_id)
    from twinsieve.pipeline.kafka.kafka_python.client import PythonBroker

    return PythonBroker(settings, client_id)
