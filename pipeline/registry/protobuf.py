"""Protobuf values as documents, of which only the wanted fields are read.

The registry is asked for each schema as a serialized descriptor, so no compiler of Protobuf is needed. The
library itself refuses a value that is nested deeper than 100 levels.
Source: Confluent, "Wire format": behind the id stand the indexes of the value's message in the schema.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Collection, Iterable
from importlib import import_module
from typing import Any

from confluent_kafka.schema_registry import Schema
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass

from twinsieve.pipeline.registry.framing import Framed
from twinsieve.pipeline.registry.registered import Reader
from twinsieve.pipeline.registry.schemas import SchemaError

_MOST_INDEXES = 32
_MOST_SHIFTS = 35
_BUILT_IN = re.compile(r"(google/protobuf|google/type|confluent)/([a-z_]{1,40}(?:/[a-z_]{1,40})?)\.proto")
"""Files that a schema imports without naming them among its references."""
_MODULES = {
    "google/protobuf": "google.protobuf",
    "google/type": "google.type",
    "confluent": "confluent_kafka.schema_registry.confluent",
}


class Protobuf:
    """The form Protobuf. wanted: names of the fields of a message that are read"""

    title, kind = "Protobuf", "PROTOBUF"
    text: str | None = "serialized"

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = frozenset(wanted)

    def reader(self, schema: Schema, imports: Iterable[tuple[str, Schema]]) -> Reader:
        """What reads values of this schema: the wanted fields, and defaults of others. A wanted field that is
        not set has its default too, unless its schema can tell that it is not set. raises: as `Form.reader`
        """
        pool, added = DescriptorPool(), set[str]()
        for name, imported in imports:
            _add(pool, _file(imported, name), added)
        file = _file(schema, "value.proto")
        _add(pool, file, added)
        classes: dict[tuple[int, ...], Any] = {}

        def class_of(indexes: tuple[int, ...]) -> Any:
            if indexes not in classes:
                name, inside = file.package, file.message_type
                for index in indexes:
                    name, inside = f"{name}.{inside[index].name}", inside[index].nested_type
                classes[indexes] = GetMessageClass(pool.FindMessageTypeByName(name.removeprefix(".")))
            return classes[indexes]

        def read(message: Framed) -> Any:
            indexes, begin = indexes_of(message.value if message.head is None else message.head)
            made = class_of(indexes)()
            made.ParseFromString(message.value[begin if message.head is None else 0 :])
            return self._document(made)

        return read

    def _document(self, made: Any) -> dict[str, Any]:
        for field, _ in made.ListFields():
            if field.name not in self._wanted:
                made.ClearField(field.name)
        document: dict[str, Any] = MessageToDict(
            made, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        for field in made.DESCRIPTOR.fields:
            if field.type == field.TYPE_BYTES and field.name in document:
                # Bytes are no text, also if they are written as one.
                document[field.name] = {"base64": document[field.name]}
        return document


def _file(schema: Schema, name: str) -> FileDescriptorProto:
    try:
        serialized = b64decode(schema.schema_str or "", validate=True)
    except ValueError as error:
        # Apicurio 2.6 gives each schema as it was registered; clients in Java register text.
        raise SchemaError("the registry gives it as text, and not as a descriptor") from error
    file = FileDescriptorProto.FromString(serialized)
    file.name = name
    return file


def _add(pool: DescriptorPool, file: FileDescriptorProto, added: set[str]) -> None:
    """Add a file to a pool, after the files that it imports. added: names of the files that are there already

    raises: SchemaError if one is neither there nor a part of an installed package
    """
    for name in file.dependency:
        if name not in added:
            _add(pool, _built_in(name), added)
    added.add(file.name)
    pool.Add(file)


def _built_in(name: str) -> FileDescriptorProto:
    found = _BUILT_IN.fullmatch(name)
    if found is None:
        raise SchemaError("it imports a file that is not among its references")
    try:
        module = import_module(f"{_MODULES[found[1]]}.{found[2].replace('/', '.')}_pb2")
    except ImportError as error:
        raise SchemaError(f"it imports {name}, which no installed package has") from error
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)


def indexes_of(value: bytes) -> tuple[tuple[int, ...], int]:
    """The indexes of a value's message in its schema, the outermost first, and where the message begins.

    raises: ValueError; IndexError if the value ends before

    >>> indexes_of(b"\\0rest"), indexes_of(bytes([4, 2, 0]) + b"rest")
    (((0,), 1), ((1, 0), 3))
    """
    count, at = _zigzag(value, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MOST_INDEXES:
        raise ValueError("no number of indexes")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(value, at)
        if index < 0:
            raise ValueError("an index below 0")
        indexes.append(index)
    return tuple(indexes), at


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift >= _MOST_SHIFTS:
            raise ValueError("a number without an end")
