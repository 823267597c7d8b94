"""Values of a schema registry, written by confluent-kafka's own serializers, are read as the JSON of the same."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.error import HTTPError

import fastavro
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP
from hypothesis import given
from hypothesis import strategies as st

from tests.registry.apicurio import AnyRegistry, Apicurio
from tests.registry.own_registry import OwnRegistry
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.records import AbortableError
from twinsieve.pipeline.messages.reader import MessageColumns, MessageReader
from twinsieve.pipeline.registry.protobuf import indexes_of
from twinsieve.pipeline.settings.model import Settings

CONTEXT = SerializationContext("posts", MessageField.VALUE)
USER = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
POST = {
    "type": "record",
    "name": "Post",
    "namespace": "org.example",
    "fields": [
        {"name": "before", "type": ["null", USER]},
        {"name": "id", "type": "long"},
        {"name": "text", "type": ["null", "string"]},
        {"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "author", "type": "User"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    ],
}
TREE = {
    "type": "record",
    "name": "Comment",
    "fields": [
        {"name": "text", "type": "string"},
        {"name": "replies", "type": {"type": "array", "items": "Comment"}},
    ],
}


@pytest.fixture(autouse=True)
def _answers(own: OwnRegistry) -> None:
    own.answer_again()


def reader(registry: AnyRegistry, encoding: str = "avro", **source: object) -> MessageReader:
    login = source.pop("login", {})
    held = {"url": registry.url, **login} if encoding != "json_schema" else {}  # type: ignore[dict-item]
    values = {"input": {"encoding": encoding, "registry": held, **source}}
    return MessageReader(Settings.model_validate(values), ids_shown=True)


@cache
def kept_reader(registry: AnyRegistry, encoding: str = "avro", **source: str) -> MessageReader:
    """One for all examples of a test: its client takes longer to make than a message to read."""
    return reader(registry, encoding, **source)


@cache
def avro_serializer(registry: AnyRegistry) -> AvroSerializer:
    return AvroSerializer(SchemaRegistryClient({"url": registry.url}), json.dumps(POST))


@cache
def protobuf_serializer(registry: AnyRegistry) -> ProtobufSerializer:
    options = {"use.deprecated.format": False, "skip.known.types": True}
    return ProtobufSerializer(proto_class(), SchemaRegistryClient({"url": registry.url}), options)


def avro(schema: object, number: int, document: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), document)
    return framed(number, stream.getvalue())


def framed(number: int, value: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + value


def reasons(columns: MessageColumns) -> list[str]:
    return [bad.reason for bad in columns.unreadable]


def post(number: int, text: str | None) -> dict[str, Any]:
    at = datetime.fromtimestamp(1_700_000_000 + number, UTC)
    author = {"name": f"author {number}"}
    return {
        "before": author if number % 2 else None,
        "id": number,
        "text": text,
        "created_at": at,
        "author": author,
        "kind": "B",
    }


@given(st.lists(st.tuples(st.integers(1, 1 << 40), st.one_of(st.none(), st.text())), min_size=1, max_size=40))
def test_avro_is_read_as_its_json(registry: AnyRegistry, rows: list[tuple[int, str | None]]) -> None:
    serialize = avro_serializer(registry)
    documents = [post(number % 1000, text) | {"id": number} for number, text in rows]
    messages = [serialize(document, CONTEXT) for document in documents]
    found = kept_reader(registry, time_field="created_at").read(messages)
    as_json = [
        json.dumps(document | {"created_at": document["created_at"].isoformat()}).encode()
        for document in documents
    ]
    wanted = kept_reader(registry, "json_schema", time_field="created_at").read(
        [framed(9, message) for message in as_json]
    )
    assert (found.rows, list(found.texts), reasons(found)) == (
        wanted.rows,
        list(wanted.texts),
        reasons(wanted),
    )
    assert found.id_hashes.tolist() == wanted.id_hashes.tolist()
    assert found.times_ms.tolist() == wanted.times_ms.tolist()
    assert found.bad_times == wanted.bad_times == []


def test_a_schema_is_asked_for_once(own: OwnRegistry) -> None:
    number = own.add("posts-value", POST)
    kept = reader(own)
    for _ in range(3):
        kept.read([avro(POST, number, post(1, "text"))] * 50)
    assert [path.partition("?")[0] for path in own.asked] == [f"/schemas/ids/{number}"]


def test_a_path_leads_into_a_change_of_debezium(registry: AnyRegistry) -> None:
    row = {"type": "record", "name": "Value", "fields": [{"name": "body", "type": "string"}]}
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}
    change = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "source", "type": source},
            {"name": "op", "type": "string"},
        ],
    }
    number = registry.add("changes-value", change)
    origin = {"lsn": 7}
    messages = [
        avro(change, number, {"before": None, "after": {"body": "new"}, "source": origin, "op": "c"}),
        avro(
            change,
            number,
            {"before": {"body": "old"}, "after": {"body": "newer"}, "source": origin, "op": "u"},
        ),
        avro(change, number, {"before": {"body": "newer"}, "after": None, "source": origin, "op": "d"}),
    ]
    found = reader(registry, text_field=["after.body"], id_field=None).read(messages)
    assert (found.rows, list(found.texts)) == ([0, 1], ["new", "newer"])
    assert [(bad.row, bad.reason) for bad in found.unreadable] == [(2, DeadLetterReason.MISSING_FIELD)]
    as_json = json.dumps({"payload": {"after": {"body": "new"}, "op": "c"}}).encode()
    found = reader(registry, "json_schema", text_field=["payload.after.body"]).read([framed(3, as_json)])
    assert list(found.texts) == ["new"]


def test_types_of_other_schemas_are_asked_for_too(registry: AnyRegistry) -> None:
    registry.add("user", USER)
    post_ = {
        "type": "record",
        "name": "P",
        "fields": [{"name": "text", "type": "string"}, {"name": "by", "type": "User"}],
    }
    number = registry.add(
        "refers-value", post_, references=[{"name": "User", "subject": "user", "version": 1}]
    )
    whole = {**post_, "fields": [post_["fields"][0], {"name": "by", "type": USER}]}
    message = avro(whole, number, {"text": "a text", "by": {"name": "somebody"}})
    found = reader(registry, id_field="by.name").read([message])
    assert (list(found.texts), found.ids) == (["a text"], ["somebody"])


def test_bytes_are_no_text_and_other_values_become_those_of_json(registry: AnyRegistry) -> None:
    schema = {
        "type": "record",
        "name": "Other",
        "fields": [
            {"name": "text", "type": ["string", "bytes"]},
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "created_at", "type": {"type": "int", "logicalType": "date"}},
        ],
    }
    number = registry.add("other-value", schema)
    name = "0f8fad5b-d9cb-469f-a165-70867728950e"
    written = [avro(schema, number, {"text": text, "id": name, "created_at": 18_304}) for text in ("a", b"a")]
    found = reader(registry).read(written)
    assert (found.rows, found.ids, reasons(found)) == ([0], [name], ["not_text"])
    assert found.times_ms.tolist() == [18_304 * 86_400_000]


HOSTILE: dict[str, tuple[object, bytes, str]] = {
    "ends early": (POST, b"\0\x0e", "invalid_value"),
    "a length without end": (POST, b"\0\x0e\x02" + b"\xff" * 9 + b"\x01", "invalid_value"),
    "no such type of a union": (POST, b"\x08", "invalid_value"),
    "more behind it": (USER, b"\x02a\0", "invalid_value"),
    "no UTF-8": ({**USER, "fields": [{"name": "text", "type": "string"}]}, b"\x02\xff", "invalid_value"),
    "no time": (POST, b"\0\x0e\0" + b"\xff" * 8 + b"\x7f" + b"\x02a\x02", "invalid_value"),
    # Read as it says, each of these ended or stopped the process.
    "nested without end": (TREE, b"\x02a\x02" * 100_000, "invalid_value"),
    "a list of nothing": (
        {
            "type": "record",
            "name": "Z",
            "fields": [{"name": "text", "type": {"type": "array", "items": "null"}}],
        },
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f",
        "unknown_schema",
    ),
    "a list of empty records": (
        {
            "type": "record",
            "name": "Y",
            "fields": [
                {"name": "text", "type": "string"},
                {
                    "name": "x",
                    "type": {"type": "array", "items": {"type": "record", "name": "E", "fields": []}},
                },
            ],
        },
        b"\x02a\xfe\xff\xff\xff\xff\xff\xff\xff\x7f",
        "unknown_schema",
    ),
    "no schema": ("{", b"", "unknown_schema"),
    "a schema of no known type": ({"type": "nothing"}, b"", "unknown_schema"),
    "no record": ('"string"', b"\x02a", "not_an_object"),
}
REFUSED = ("no schema", "a schema of no known type")
"""What a registry that checks schemas does not take."""


@pytest.mark.parametrize("case", HOSTILE)
def test_what_strangers_write_becomes_a_dead_letter(registry: AnyRegistry, case: str) -> None:
    schema, value, reason = HOSTILE[case]
    if case in REFUSED and isinstance(registry, Apicurio):
        with pytest.raises(HTTPError, match="422"):
            registry.add(f"{case}-value", schema)
        return
    number = registry.add(f"{case}-value", schema)
    good = registry.add("posts-value", POST)
    found = reader(registry).read([framed(number, value), avro(POST, good, post(1, "a text"))])
    assert (found.rows, list(found.texts), reasons(found)) == ([1], ["a text"], [reason])
    assert "xff" not in found.unreadable[0].detail


@given(st.binary(max_size=60))
def test_no_bytes_do_more_than_become_a_dead_letter(registry: AnyRegistry, value: bytes) -> None:
    numbers = [registry.add("posts-value", POST), registry.add("tree-value", TREE), register(registry)]
    for encoding, number in (("avro", numbers[0]), ("avro", numbers[1]), ("protobuf", numbers[2])):
        found = kept_reader(registry, encoding).read([framed(number, value), value])
        assert len(found.rows) + len(found.unreadable) == 2


def test_comments_in_comments_are_read_down_to_a_depth(registry: AnyRegistry) -> None:
    def tree(levels: int) -> dict[str, Any]:
        return {"text": f"level {levels}", "replies": [tree(levels - 1)] if levels else []}

    number = registry.add("tree-value", TREE)
    own = reader(registry, text_field=["replies[0].replies[0].text"], id_field=None)
    found = own.read([avro(TREE, number, tree(60)), avro(TREE, number, tree(70))])
    assert (list(found.texts), reasons(found)) == (["level 58"], ["invalid_value"])


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "empty"),
        (b"{}", "no_schema"),
        (b"\0\0\0", "no_schema"),
        (framed(7_777, b"a"), "unknown_schema"),
        (b"\0" + b"\xff" * 9, "unknown_schema"),
    ],
)
def test_what_has_no_known_schema_is_a_dead_letter(
    registry: AnyRegistry, message: bytes, reason: str
) -> None:
    for encoding in ("avro", "protobuf"):
        assert reasons(reader(registry, encoding).read([message])) == [reason]


def test_an_unknown_schema_is_not_asked_for_with_every_message(own: OwnRegistry) -> None:
    kept = reader(own)
    assert reasons(kept.read([framed(8_888, b"a")] * 50)) == ["unknown_schema"] * 50
    assert len(own.asked) == 1


def test_a_schema_of_another_form_is_a_dead_letter(registry: AnyRegistry) -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
    numbers = [registry.add("j-value", schema, "JSON"), register(registry)]
    assert (
        reasons(reader(registry).read([framed(number, b"a") for number in numbers])) == ["unknown_schema"] * 2
    )
    assert reasons(reader(registry, "protobuf").read([framed(numbers[0], b"\0a")])) == ["unknown_schema"]


def test_a_registry_need_not_tell_kinds(own: OwnRegistry) -> None:
    own.tells_kind = False
    message = framed(register(own), b"\x04\x02\0" + proto_class()(text="a text").SerializeToString())
    post_ = avro(POST, own.add("posts-value", POST), post(1, "a post"))
    assert list(reader(own, "protobuf").read([message]).texts) == ["a text"]
    assert list(reader(own).read([post_]).texts) == ["a post"]
    for encoding, other in (("avro", message), ("protobuf", post_)):
        assert reasons(reader(own, encoding).read([other])) == ["unknown_schema"]


def test_a_registry_that_does_not_answer_is_asked_again(own: OwnRegistry) -> None:
    message = avro(POST, own.add("posts-value", POST), post(1, "a text"))
    kept = reader(own)
    own.status = 500
    with pytest.raises(AbortableError, match=r"schema registry 127\.0\.0\.1:\d+: schema \d+: it answers 500"):
        kept.read([message])
    # What a web server says of any path, and a registry of a path that is not its own.
    own.status = 404
    with pytest.raises(
        AbortableError, match=r"not as a schema registry; check the path of input\.registry\.url"
    ):
        kept.read([message])
    own.status = None
    assert list(kept.read([message]).texts) == ["a text"]
    with OwnRegistry() as other:
        away = reader(other)
    with pytest.raises(AbortableError, match="no answer"):
        away.read([message])


def test_messages_wait_while_a_real_registry_stands_still(apicurio: Apicurio) -> None:
    message = avro(POST, apicurio.add("posts-value", POST), post(1, "a text"))
    kept = reader(apicurio)
    apicurio.freeze()
    try:
        with pytest.raises(AbortableError, match="no answer"):
            kept.read([message])
    finally:
        apicurio.thaw()
    assert list(kept.read([message]).texts) == ["a text"]


def test_messages_wait_under_a_wrong_path_of_a_real_registry(apicurio: Apicurio) -> None:
    message = avro(POST, apicurio.add("posts-value", POST), post(1, "a text"))
    for path in ("", "/apis/registry/v2"):
        wrong = reader(apicurio, login={"url": apicurio.url.replace("/apis/ccompat/v7", path)})
        with pytest.raises(AbortableError, match=r"check the path of input\.registry\.url"):
            wrong.read([message])


def test_a_deleted_schema_is_unknown_to_who_reads_it_first(apicurio: Apicurio) -> None:
    schema = {**POST, "name": "Deleted"}
    message = avro(schema, apicurio.add("deleted-value", schema), post(1, "a text"))
    before = reader(apicurio)
    assert list(before.read([message]).texts) == ["a text"]
    apicurio.delete("deleted-value")
    assert list(reader(apicurio).read([message]).texts) == ["a text"]
    apicurio.delete_for_good("deleted-value")
    assert list(before.read([message]).texts) == ["a text"]
    found = reader(apicurio).read([message])
    assert reasons(found) == ["unknown_schema"]
    assert "does not know schema" in found.unreadable[0].detail


def test_a_refused_login_is_said_and_a_new_password_is_read(own: OwnRegistry, tmp_path: Any) -> None:
    secret = tmp_path / "password"
    secret.write_text("old\n")
    message = avro(POST, own.add("posts-value", POST), post(1, "a text"))
    own.login = ("reader", "new:%")
    kept = reader(own, login={"username": "reader", "password": "old", "password_file": str(secret)})
    with pytest.raises(AbortableError, match=r"input\.registry\.username") as refused:
        kept.read([message])
    assert "old" not in str(refused.value)
    secret.write_text("new:%\n")
    assert list(kept.read([message]).texts) == ["a text"]


def _file(name: str, *fields: tuple[str, int, str, bool]) -> FileDescriptorProto:
    """A file with one outer message, and within it the message that is meant."""
    file = FileDescriptorProto(name=name, package="org.example", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Unused")
    message = file.message_type.add(name="Outer").nested_type.add(name="Post")
    for place, (field, kind, type_name, repeated) in enumerate(fields, start=1):
        label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
        message.field.add(name=field, number=place, type=kind, type_name=type_name or None, label=label)
    return file


_PROTO = _file(
    "post.proto",
    ("id", FieldDescriptorProto.TYPE_INT64, "", False),
    ("text", FieldDescriptorProto.TYPE_STRING, "", False),
    ("created_at", FieldDescriptorProto.TYPE_MESSAGE, ".google.protobuf.Timestamp", False),
    ("raw", FieldDescriptorProto.TYPE_BYTES, "", False),
    ("replies", FieldDescriptorProto.TYPE_MESSAGE, ".org.example.Outer.Post", True),
)


@cache
def proto_class() -> Any:
    pool = DescriptorPool()
    pool.Add(FileDescriptorProto.FromString(TIMESTAMP.serialized_pb))
    pool.Add(_PROTO)
    return GetMessageClass(pool.FindMessageTypeByName("org.example.Outer.Post"))


def register(registry: AnyRegistry) -> int:
    return registry.add("proto-value", b64encode(_PROTO.SerializeToString()).decode(), "PROTOBUF")


@given(st.lists(st.tuples(st.integers(1, 1 << 40), st.text()), min_size=1, max_size=40))
def test_protobuf_is_read_as_its_json(registry: AnyRegistry, rows: list[tuple[int, str]]) -> None:
    made = proto_class()
    serialize = protobuf_serializer(registry)
    messages = []
    for number, text in rows:
        message = made(id=number, text=text, raw=b"a", replies=[made(text="a reply")])
        message.created_at.seconds = number % 1_000_000
        messages.append(serialize(message, CONTEXT))
    found = kept_reader(registry, "protobuf", time_field="created_at").read(messages)
    as_json = [json.dumps({"id": number, "text": text}).encode() for number, text in rows]
    wanted = kept_reader(registry, "json_schema").read([framed(1, message) for message in as_json])
    assert (found.rows, list(found.texts)) == (wanted.rows, list(wanted.texts))
    assert found.id_hashes.tolist() == wanted.id_hashes.tolist()
    assert found.times_ms.tolist() == [number % 1_000_000 * 1000 for number, _ in rows]
    raw = kept_reader(registry, "protobuf", text_field="raw").read(messages)
    assert set(reasons(raw)) == {"not_text"}
    reply = kept_reader(registry, "protobuf", text_field="replies[0].text").read(messages)
    assert set(reply.texts) == {"a reply"}


def test_a_schema_of_protobuf_as_text_is_named_so(registry: AnyRegistry) -> None:
    number = registry.add("text-value", 'syntax = "proto3"; message Post { string text = 1; }', "PROTOBUF")
    found = reader(registry, "protobuf").read([framed(number, b"\0\x0a\6a text")])
    assert reasons(found) == ["unknown_schema"]
    assert "as text, and not as a descriptor" in found.unreadable[0].detail


@pytest.mark.parametrize(
    "value", [b"", b"\x02", b"\x01\0", b"\x80" * 9, b"\x04\x02\x02a", b"\x04\x02\0\x12\xff"]
)
def test_a_damaged_value_of_protobuf_is_a_dead_letter(registry: AnyRegistry, value: bytes) -> None:
    found = reader(registry, "protobuf").read([framed(register(registry), value)])
    assert reasons(found) == ["invalid_value"]


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=8), st.binary(max_size=5))
def test_indexes_are_those_of_the_serializer(indexes: list[int], rest: bytes) -> None:
    stream = io.BytesIO()
    ProtobufSerializer._encode_varints(stream, indexes, zigzag=True)
    head = stream.getvalue()
    assert indexes_of(head + rest) == (tuple(indexes), len(head))
