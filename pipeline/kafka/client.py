"""The base class of every Kafka client: it can be closed, and shows that it was."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Client(ABC):
    """A client of a `KafkaBroker`, which drops its reference to the client once `closed` is True.

    closed: True after `close`
    """

    closed = False

    @abstractmethod
    def close(self) -> None: ...
