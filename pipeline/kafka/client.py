"""The end of a client."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Client(ABC):
    """A client that shows whether it was closed; its broker forgets it then.

    closed: set by its `close`
    """

    closed = False

    @abstractmethod
    def close(self) -> None: ...
