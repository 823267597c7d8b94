"""What every Kafka client of a process gets when it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from twinsieve.pipeline.broker.arenas import Arenas
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.kafka.admin import KafkaAdmin
from twinsieve.pipeline.kafka.size_limits import Limits
from twinsieve.pipeline.settings.client_buffers import arena_bytes
from twinsieve.pipeline.settings.model import KafkaSettings


class Access:
    """Settings and objects that the clients of a process share.

    options: the library's options that consumers, producers and admin clients share
    admin: returns the administration client of the process, and connects it at the first call
    clock: the broker's clock, as far as the clients have learned it from answers
    arenas: memory for polled messages
    limits: the size and time limits of topics
    """

    def __init__(
        self,
        settings: KafkaSettings,
        options: Mapping[str, Any],
        admin: Callable[[], KafkaAdmin],
        clock: BrokerClock,
    ) -> None:
        self.settings = settings
        self.options = options
        self.admin = admin
        self.clock = clock
        self.arenas = Arenas(arena_bytes(settings))
        self.limits = Limits(admin, clock, settings.message_bytes, settings.compression)
