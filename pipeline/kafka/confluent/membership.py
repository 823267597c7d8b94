"""As whom a confluent-kafka consumer belongs to its group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twinsieve.pipeline.broker.ports import FatalError

_MAGIC = b"CGMDv2:"


@dataclass(frozen=True, slots=True)
class ConfluentMember:
    """What `ports.Membership.handle` is here.

    consumer: tells the present member id; fenced: whether another process displaced it
    member_id: what the group called this member then, "" while it was joining
    """

    metadata: bytes
    consumer: Any
    fenced: Callable[[], bool]
    member_id: str

    @property
    def stale(self) -> bool:
        """It goes by another member id now, or is about to: its session ended and it joined anew."""
        try:
            return bool(self.consumer.memberid() != self.member_id)
        except RuntimeError:
            # Closed, for a client that joined anew.
            return True


def look(consumer: Any, fenced: Callable[[], bool]) -> tuple[int, ConfluentMember]:
    """The generation that the client believes in, and the rest of its membership.

    raises: FatalError under a librdkafka that tells it in another form
    """
    metadata = consumer.consumer_group_metadata()
    if not metadata.startswith(_MAGIC):
        raise FatalError("this librdkafka writes group metadata in an unknown form; install another")
    generation = int.from_bytes(metadata[len(_MAGIC) : len(_MAGIC) + 4], "little", signed=True)
    return generation, ConfluentMember(metadata, consumer, fenced, consumer.memberid() or "")
