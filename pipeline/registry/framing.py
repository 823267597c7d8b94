"""The id of a value's schema, which stands in a header of the message or before the value.

A zero byte and an id of four bytes, or a one and a GUID of 16. With a header the value is whole.
Source: Confluent, "Formats, Serializers, and Deserializers", section "Wire format"; `schema.id.serializer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, UnreadableError
from twinsieve.pipeline.broker.records import Header

_ID, _GUID = b"\0", b"\1"
_ID_END, _GUID_END = 5, 17


class Framed(NamedTuple):
    """A value and what its serializer says of it.

    schema: the id of its schema, or the GUID
    head: what stands behind that in a header; None if there is no header, and all stands before the value
    """

    schema: int | str
    head: bytes | None
    value: bytes


def unframed(message: bytes | None, header: bytes | None = None) -> Framed:
    """The parts of a message. header: as `id_headers`. raises: UnreadableError

    >>> unframed(bytes([0, 0, 0, 1, 2]) + b"{}")
    Framed(schema=258, head=None, value=b'{}')
    >>> unframed(b"{}", header=bytes([0, 0, 0, 1, 2]))
    Framed(schema=258, head=b'', value=b'{}')
    """
    if message is None:
        raise UnreadableError(DeadLetterReason.NULL, "has no value")
    if header is not None:
        return Framed(*_split(header, "has a header for the id of a schema, which holds none"), message)
    if not message:
        raise UnreadableError(DeadLetterReason.EMPTY, "is empty")
    schema, value = _split(message, "has no header with the id of a schema, and does not begin with one")
    return Framed(schema, None, value)


def id_headers(messages: Iterable[Sequence[Header]], part: Literal["value", "key"]) -> list[bytes | None]:
    """The header of each message that holds the id of a schema; None without one. messages: their headers

    Of two the last one counts, as for deserializers in Java and .NET (the one in Python takes the first): a
    program that keeps the headers of what it read, and adds its own, writes two.
    """
    name = f"__{part}_schema_id"
    return [
        next((value for key, value in reversed(headers) if key == name), None) if headers else None
        for headers in messages
    ]


def _split(framed: bytes, otherwise: str) -> tuple[int | str, bytes]:
    """The id or GUID, and what stands behind it. raises: UnreadableError, with this text, without either"""
    kind = framed[:1]
    if kind == _ID and len(framed) >= _ID_END:
        return int.from_bytes(framed[1:_ID_END], "big"), framed[_ID_END:]
    if kind == _GUID and len(framed) >= _GUID_END:
        return str(UUID(bytes=framed[1:_GUID_END])), framed[_GUID_END:]
    raise UnreadableError(DeadLetterReason.NO_SCHEMA, otherwise)
