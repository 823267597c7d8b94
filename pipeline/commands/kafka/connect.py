"""Make a broker from settings: the only place that chooses the Kafka client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import KafkaSettings, Settings

if TYPE_CHECKING:
    from twinsieve.pipeline.kafka.confluent.client import ConfluentBroker
    from twinsieve.pipeline.kafka.kafka_python.client import PythonBroker


def connect_by_settings(settings: Settings) -> ConfluentBroker | PythonBroker:
    """A broker for the section `kafka` of the settings; its client id is the app. raises: as `connect`"""
    return connect(settings.kafka, client_id=settings.app)


def connect(settings: KafkaSettings, client_id: str = "twinsieve") -> ConfluentBroker | PythonBroker:
    """A broker that uses the Kafka client named in the settings. It sends nothing yet.

    client_id: name of this client in the broker's logs and quotas
    raises: ConfigError if the client is not installed, or if a secret file cannot be read
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
