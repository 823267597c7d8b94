"""The end of a client."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Client(ABC):
    """A client that tells whether it was closed; whoever made it forgets it then.

    closed: set by its `close`
    """

    closed = False

    @abstractmethod
    def close(self) -> None: ...
