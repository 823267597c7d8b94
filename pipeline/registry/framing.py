"""What stands before a value whose schema is in a registry: a zero byte, then the schema's id.

Source: Confluent, "Formats, Serializers, and Deserializers", section "Wire format".
"""

from __future__ import annotations

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, UnreadableError

_MAGIC = 0
_HEAD = 5


def unframed(message: bytes | None) -> tuple[int, bytes]:
    """The schema's id and the value behind it. raises: UnreadableError

    >>> unframed(bytes([0, 0, 0, 1, 2]) + b"{}")
    (258, b'{}')
    """
    if message is None:
        raise UnreadableError(DeadLetterReason.NULL, "has no value")
    if not message:
        raise UnreadableError(DeadLetterReason.EMPTY, "is empty")
    if message[0] != _MAGIC or len(message) < _HEAD:
        raise UnreadableError(
            DeadLetterReason.NO_SCHEMA, "does not begin with a zero byte and the id of a schema"
        )
    return int.from_bytes(message[1:_HEAD], "big"), message[_HEAD:]
