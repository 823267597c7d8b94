"""Posts of the generator as values of a registry: `id`, `text` and `created_at`, all text."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import fastavro
import orjson
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tests.registry.own_registry import OwnRegistry

FIELDS = ("id", "text", "created_at")


def writer(registry: OwnRegistry, encoding: str) -> Callable[[bytes], bytes]:
    """What makes a message of a post in JSON, with a schema that the registry holds from now on."""
    if encoding == "avro":
        fields = [{"name": name, "type": "string"} for name in FIELDS]
        schema = {"type": "record", "name": "Post", "fields": fields}
        head, parsed = _head(registry.add("posts-value", schema)), fastavro.parse_schema(schema)
        return lambda post: head + _avro(parsed, orjson.loads(post))
    if encoding == "protobuf":
        file = FileDescriptorProto(name="post.proto", syntax="proto3")
        message = file.message_type.add(name="Post")
        for number, name in enumerate(FIELDS, start=1):
            message.field.add(
                name=name,
                number=number,
                type=FieldDescriptorProto.TYPE_STRING,
                label=FieldDescriptorProto.LABEL_OPTIONAL,
            )
        text = b64encode(file.SerializeToString()).decode()
        # The zero: the value is of the first message of its schema.
        proto_head = _head(registry.add("posts-value", text, "PROTOBUF")) + b"\0"
        pool = DescriptorPool()
        pool.Add(file)
        made = GetMessageClass(pool.FindMessageTypeByName("Post"))
        return lambda post: proto_head + made(**orjson.loads(post)).SerializeToString()
    json_head = _head(registry.add("posts-value", {"type": "object"}, "JSON"))
    return lambda post: json_head + post


def settings(registry: OwnRegistry, encoding: str) -> dict[str, Any]:
    """Settings of an input of these messages."""
    needed = {"registry": {"url": registry.url}} if encoding in ("avro", "protobuf") else {}
    return {"encoding": encoding, **needed}


def _head(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


def _avro(schema: Any, document: object) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, document)
    return stream.getvalue()
