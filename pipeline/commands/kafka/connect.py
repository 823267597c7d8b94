"""Connects a command to the broker of its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinsieve.pipeline.settings.model import Settings

if TYPE_CHECKING:
    from twinsieve.pipeline.kafka.broker import KafkaBroker


def connect_by_settings(settings: Settings) -> KafkaBroker:
    """A broker for the section `kafka` of the settings; its client id is the app. It sends nothing yet.

    raises: ConfigError, as `KafkaBroker`
    """
    # Imported only when it is needed, because kafka-python is slow to load.
    from twinsieve.pipeline.kafka.broker import KafkaBroker

    return KafkaBroker(settings.kafka, settings.app)
