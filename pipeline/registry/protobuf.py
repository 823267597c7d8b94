"""Protobuf values as documents, of which only the wanted fields are read.

The registry gives each schema as a serialized descriptor, so no compiler of Protobuf is needed. The library
itself refuses a value that is nested deeper than 100 levels.
Source: Confluent, "Wire format": in front of a value stand the indexes of its message in the schema.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

from twinsieve.pipeline.broker.records import AbortableError
from twinsieve.pipeline.registry.framing import invalid_value, unframed
from twinsieve.pipeline.registry.schemas import INSTALL, Readers, Registry, SchemaError
from twinsieve.stages.errors import UsageError

_SERIALIZED = "serialized"
_MOST_INDEXES = 32
_MOST_SHIFTS = 35
_BUILT_IN = re.compile(r"(google/protobuf|google/type|confluent)/([a-z_]{1,40}(?:/[a-z_]{1,40})?)\.proto")
"""Files that a schema imports without naming them among its references."""
_MODULES = {
    "google/protobuf": "google.protobuf",
    "google/type": "google.type",
    "confluent": "confluent_kafka.schema_registry.confluent",
}


class ProtobufValues:
    """Reads values of Protobuf whose schemas a registry holds.

    wanted: names of the fields of a message that are read
    raises: UsageError if a package is missing
    """

    def __init__(self, registry: Registry, wanted: Collection[str]) -> None:
        try:
            from google.protobuf import json_format
        except ImportError as error:
            raise UsageError(f"input.encoding: a package for Protobuf is missing; {INSTALL}") from error
        self._to_dict = json_format.MessageToDict
        self._registry = registry
        self._wanted = frozenset(wanted)
        self._files = Readers(self._file)

    def decode(self, message: bytes | None) -> Any:
        """The document of a message: the wanted fields, and defaults of others. A field that is not set
        has its default too, unless its schema can tell that it is not set.

        raises: UnreadableError; AbortableError if the registry does not answer
        """
        number, value = unframed(message)
        made_of = self._files.of(number)
        try:
            indexes, begin = indexes_of(value)
            made = made_of(indexes)()
            made.ParseFromString(value[begin:])
            return self._document(made)
        except MemoryError:
            raise
        except Exception as error:
            # Damaged bytes give errors of any kind, and their texts may show what stands in the message.
            raise invalid_value("Protobuf", number, type(error).__name__) from error

    def _document(self, made: Any) -> dict[str, Any]:
        for field, _ in made.ListFields():
            if field.name not in self._wanted:
                made.ClearField(field.name)
        document: dict[str, Any] = self._to_dict(
            made, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        for field in made.DESCRIPTOR.fields:
            if field.type == field.TYPE_BYTES and field.name in document:
                # Bytes are no text, also if they are written as one.
                document[field.name] = {"base64": document[field.name]}
        return document

    def _file(self, number: int) -> Callable[[tuple[int, ...]], Any]:
        """What gives the class of each message of a schema. raises: SchemaError; AbortableError"""
        from google.protobuf.descriptor_pool import DescriptorPool
        from google.protobuf.message_factory import GetMessageClass

        found = self._registry.schema(number, _SERIALIZED)
        if found.schema_type != "PROTOBUF":
            raise SchemaError(f"schema {number} is {found.schema_type or 'AVRO'}, not PROTOBUF")
        pool = DescriptorPool()
        try:
            file = self._added(pool, found, f"{number}.proto", set())
        except (SchemaError, AbortableError):
            raise
        except Exception as error:
            raise SchemaError(f"schema {number} is no schema of Protobuf ({type(error).__name__})") from error
        classes: dict[tuple[int, ...], Any] = {}

        def made_of(indexes: tuple[int, ...]) -> Any:
            if indexes not in classes:
                name, inside = file.package, file.message_type
                for index in indexes:
                    name, inside = f"{name}.{inside[index].name}", inside[index].nested_type
                classes[indexes] = GetMessageClass(pool.FindMessageTypeByName(name.removeprefix(".")))
            return classes[indexes]

        return made_of

    def _added(self, pool: Any, found: Any, name: str, seen: set[str]) -> Any:
        """The descriptor of a file, which `pool` gets after those of the files that it imports."""
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        for reference in found.references or ():
            if reference.name not in seen:
                seen.add(reference.name)
                imported = self._registry.version(reference.subject, reference.version, _SERIALIZED)
                self._added(pool, imported, reference.name, seen)
        file = FileDescriptorProto.FromString(b64decode(found.schema_str, validate=True))
        file.name = name
        for imported_name in file.dependency:
            _add_built_in(pool, imported_name, seen)
        pool.Add(file)
        return file


def _add_built_in(pool: Any, name: str, seen: set[str]) -> None:
    """Add a file that comes with the packages. raises: SchemaError if there is none of this name"""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    if name in seen:
        return
    seen.add(name)
    found = _BUILT_IN.fullmatch(name)
    if found is None:
        raise SchemaError("it imports a file that is not among its references")
    try:
        module = import_module(f"{_MODULES[found[1]]}.{found[2].replace('/', '.')}_pb2")
    except ImportError as error:
        raise SchemaError(f"it imports {name}, which no installed package has") from error
    file = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    for imported in file.dependency:
        _add_built_in(pool, imported, seen)
    pool.Add(file)


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
