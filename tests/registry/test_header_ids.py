"""The id of a schema stands in a header, as confluent-kafka's own serializer writes it, or before the value."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from hypothesis import given
from hypothesis import strategies as st

from tests.registry.apicurio import Apicurio
from tests.registry.own_registry import OwnRegistry
from tests.registry.test_values import POST, avro, post, proto_class, reader, reasons, register
from twinsieve.pipeline.basics.dead_letter_reasons import UnreadableError
from twinsieve.pipeline.broker.records import AbortableError, Header
from twinsieve.pipeline.registry.framing import id_headers, unframed

VALUE, KEY = "__value_schema_id", "__key_schema_id"
GUID = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")


@pytest.fixture(autouse=True)
def _answers(own: OwnRegistry) -> None:
    own.status, own.login, own.tells_kind = None, None, True
    own.asked.clear()


def written(
    own: OwnRegistry, document: Any, *, field: str = MessageField.VALUE
) -> tuple[bytes, list[Header]]:
    """A value and its headers by confluent-kafka's serializer; of Protobuf, if it is no dict."""
    client = SchemaRegistryClient({"url": own.url})
    options: dict[str, Any] = {"schema.id.serializer": header_schema_id_serializer}
    serialize: Any
    if isinstance(document, dict):
        serialize = AvroSerializer(client, json.dumps(POST), conf=options)
    else:
        options |= {"use.deprecated.format": False, "skip.known.types": True}
        serialize = ProtobufSerializer(type(document), client, options)
    context = SerializationContext("posts", field, [])
    value = serialize(document, context)
    headers: Any = context.headers
    return value, headers


def framed_avro(number: int) -> tuple[bytes, bytes]:
    """A header with an id, and the value to it."""
    whole = avro(POST, number, post(1, "a text"))
    return whole[:5], whole[5:]


def test_what_confluents_serializer_writes_is_read(own: OwnRegistry) -> None:
    value, headers = written(own, post(7, "a text"))
    ((name, header),) = headers
    assert (name, header and header[:1], len(header or b"")) == (VALUE, b"\1", 17)
    before = avro(POST, own.add("posts-value", POST), post(8, "another"))
    own.asked.clear()
    kept = reader(own)
    found = kept.read([value, before, value] * 20, headers=[headers, [], [("trace", None), *headers]] * 20)
    assert list(found.texts) == ["a text", "another", "a text"] * 20
    assert found.ids[:3] == [7, 8, 7]
    assert len([path for path in own.asked if path.startswith("/schemas/guids/")]) == 1
    assert len(own.asked) == 2


def test_what_confluents_serializer_writes_of_protobuf_is_read(own: OwnRegistry) -> None:
    texts = ["a text", ""]
    rows = [written(own, proto_class()(text=text)) for text in texts]
    # The indexes of the message stand in the header too: a message without a field has no bytes.
    assert [len(value) for value, _ in rows] == [8, 0]
    assert all(len(header or b"") > 17 for _, headers in rows for _, header in headers)
    found = reader(own, "protobuf").read(
        [value for value, _ in rows], headers=[headers for _, headers in rows]
    )
    assert list(found.texts) == texts


def test_json_with_an_id_in_a_header_is_whole() -> None:
    kept = reader(OwnRegistry, "json_schema")  # type: ignore[arg-type]  # no registry is needed
    value, header = b'{"text": "a text"}', b"\1" + GUID.bytes
    found = kept.read(
        [value, value, b"\0\0\0\0\1" + value], headers=[[(VALUE, header)], [(VALUE, b"\2")], []]
    )
    assert (found.rows, list(found.texts), reasons(found)) == ([0, 2], ["a text"] * 2, ["no_schema"])


def test_the_header_of_a_key_is_another_one(own: OwnRegistry) -> None:
    value, headers = written(own, post(7, "a text"), field=MessageField.KEY)
    assert headers[0][0] == KEY
    others = [(VALUE, b"\0\0\0\0\7"), *headers]
    assert list(reader(own, part="key").read([value], headers=[others]).texts) == ["a text"]
    assert reasons(reader(own).read([value], headers=[headers])) == ["no_schema"]


@given(
    st.none() | st.binary(max_size=20) | st.binary(max_size=18).map(lambda rest: b"\1" + rest),
    st.binary(max_size=24) | st.binary(max_size=18).map(lambda rest: b"\0" + rest),
)
def test_ids_are_found_where_confluents_deserializer_finds_them(header: bytes | None, value: bytes) -> None:
    headers: list[Header] = [("trace", b"1"), (VALUE, header)]
    schema = SchemaId("AVRO")
    context = SerializationContext("posts", MessageField.VALUE, headers)  # type: ignore[arg-type]
    wanted = found = None
    with suppress(SerializationError, ValueError, struct.error):
        rest = dual_schema_id_deserializer(value, context, schema).read()
        wanted = (schema.id if schema.guid is None else str(schema.guid), rest)
    with suppress(UnreadableError):
        framed = unframed(value, *id_headers([headers], "value"))
        found = (framed.schema, framed.value)
    assert found == wanted


def test_the_last_of_two_headers_counts(own: OwnRegistry) -> None:
    header, value = framed_avro(own.add("posts-value", POST))
    wrong = (VALUE, b"\0\0\0\x1d\xc3")
    twice = [[wrong, (VALUE, header)], [(VALUE, header), wrong], [wrong, (VALUE, None)]]
    found = reader(own).read([value, value, header + value], headers=twice)
    # One without a value is as good as none.
    assert (found.rows, reasons(found)) == ([0, 2], ["unknown_schema"])


MALFORMED = [b"", b"\0", b"\0\0\0\1", b"\1" + b"a" * 15, b"\2" + b"a" * 16, b"a" * (1 << 20)]


@pytest.mark.parametrize("header", MALFORMED, ids=lambda header: f"{header[:2]!r}-{len(header)}")
def test_a_header_without_an_id_is_a_dead_letter(own: OwnRegistry, header: bytes) -> None:
    good, value = framed_avro(own.add("posts-value", POST))
    # What stands before the value does not count then.
    found = reader(own).read([good + value, value], headers=[[(VALUE, header)], [(VALUE, good)]])
    assert (found.rows, reasons(found)) == ([1], ["no_schema"])
    assert len(found.unreadable[0].detail) < 200


def test_a_long_header_is_read_as_far_as_its_id(own: OwnRegistry) -> None:
    header, value = framed_avro(own.add("posts-value", POST))
    long = header + b"\xff" * (1 << 20)
    assert list(reader(own).read([value], headers=[[(VALUE, long)]]).texts) == ["a text"]
    proto, ((name, ids),) = written(own, proto_class()(text="a text"))
    found = reader(own, "protobuf").read([proto], headers=[[(name, (ids or b"") + b"\xff" * (1 << 20))]])
    assert list(found.texts) == ["a text"]


def test_an_unknown_id_is_a_dead_letter_and_a_registry_that_is_away_is_waited_for(own: OwnRegistry) -> None:
    value, headers = written(own, post(7, "a text"))
    kept = reader(own)
    unknown: list[list[Header]] = [[(VALUE, b"\0\0\0\x1d\xc3")], [(VALUE, b"\1" + GUID.bytes)], headers]
    found = kept.read([value] * 3, headers=unknown)
    assert (found.rows, reasons(found)) == ([2], ["unknown_schema"] * 2)
    assert str(GUID) in found.unreadable[1].detail
    own.status = 500
    away = reader(own)
    with pytest.raises(AbortableError, match=r"schema [0-9a-f-]{36}: it answers 500"):
        away.read([value], headers=[headers])
    own.status = None
    assert list(away.read([value], headers=[headers]).texts) == ["a text"]


def test_a_protobuf_header_without_indexes_is_a_dead_letter(own: OwnRegistry) -> None:
    value = proto_class()(text="a text").SerializeToString()
    head = b"\0" + register(own).to_bytes(4, "big")
    headers: list[list[Header]] = [
        [(VALUE, head)],
        [(VALUE, head + b"\x80" * 20)],
        [(VALUE, head + b"\4\2\0")],
    ]
    found = reader(own, "protobuf").read([value] * 3, headers=headers)
    assert (found.rows, reasons(found)) == ([2], ["invalid_value"] * 2)


def test_a_real_registry_that_knows_no_guids_is_asked_for_ids(apicurio: Apicurio) -> None:
    header, value = framed_avro(apicurio.add("posts-value", POST))
    headers: list[list[Header]] = [[(VALUE, header)], [(VALUE, b"\1" + GUID.bytes)]]
    found = reader(apicurio).read([value] * 2, headers=headers)
    assert (found.rows, reasons(found)) == ([0], ["unknown_schema"])
