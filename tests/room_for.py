"""A client whose topics refuse large messages."""

from __future__ import annotations

from dataclasses import dataclass

from tests.memory.received import listed
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.records import Copies, Messages


@dataclass
class RoomFor:
    """Refuses a message whose value and headers have more than `size` bytes together."""

    size: int

    def unsendable(self, _topic: str, messages: Messages | Copies) -> dict[int, DeadLetterReason]:
        messages = listed([messages])
        bytes_ = [
            len(value or b"") + sum(len(name) + len(held or b"") for name, held in headers)
            for value, headers in zip(messages.values, messages.headers, strict=True)
        ]
        return {
            row: DeadLetterReason.TOO_LARGE_FOR_TOPIC for row, each in enumerate(bytes_) if each > self.size
        }
