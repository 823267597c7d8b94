"""Avro values as documents, of which only the wanted fields are read.

fastavro reads as deep and as much as a value says. So a schema that names itself is written out to a limited
depth, and one is refused in which a list may have any number of items without a byte for each. Fields that
nobody wants are skipped without becoming Python values.
Source: Apache Avro 1.12, "Binary encoding" and "Schema resolution".
"""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Collection, Iterable
from datetime import date, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
from confluent_kafka.schema_registry import Schema as RegisteredSchema

from twinsieve.pipeline.registry.framing import Framed
from twinsieve.pipeline.registry.registered import LeftoverError, Reader
from twinsieve.pipeline.registry.schemas import SchemaError

_MAX_LEVELS = 64
"""How deep named types may lie in one another."""
_MAX_TYPES = 10_000
_TOO_DEEP = {"type": "fixed", "name": "nested_too_deeply", "size": 1 << 40}
"""Stands for a type that lies deeper. It asks for more bytes than a message has, so that reading fails."""
_KEPT = ("type", "name", "symbols", "size", "logicalType", "precision", "scale")
"""What decides how a value without parts is read."""
_LEAST_BYTES = {"null": 0, "float": 4, "double": 8}
"""Least bytes of a value; one of every other type that has no parts."""
Schema = Any
"""A type of Avro: a name, an object, or a list of the types of a union."""


class Avro:
    """The form Avro. wanted: names of the fields of a message that are read"""

    title, kind = "Avro", "AVRO"
    text: str | None = None

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = frozenset(wanted)

    def reader(self, schema: RegisteredSchema, imports: Iterable[tuple[str, RegisteredSchema]]) -> Reader:
        """What reads values of this schema, with the wanted fields alone. raises: as `Form.reader`"""
        known: dict[str, Schema] = {}
        for _, imported in imports:
            fastavro.parse_schema(json.loads(imported.schema_str or ""), known)
        whole = fastavro.parse_schema(json.loads(schema.schema_str or ""), known)
        writer = unfolded(whole, known)
        least_bytes(writer, {})
        reader = unfolded(_only(whole, self._wanted), known)
        parsed, resolved = map(fastavro.parse_schema, (writer, reader))
        # Without a second schema it is faster.
        projection = None if reader == writer else resolved
        has_others = has_other_values(reader)

        def read(message: Framed) -> Any:
            stream = io.BytesIO(message.value)
            document = fastavro.schemaless_reader(stream, parsed, projection)
            left = len(message.value) - stream.tell()
            if left:
                raise LeftoverError(f"{left:,} bytes left")
            return plain(document) if has_others else document

        return read


def unfolded(schema: Schema, known: dict[str, Schema]) -> Schema:
    """The same schema, in which a type that contains itself is another type on each level, down to the last.

    schema, known: as fastavro parses them, with full names
    raises: SchemaError if it gets too large
    """
    return _Unfolding(known).of(schema, 0)


class _Unfolding:
    def __init__(self, known: dict[str, Schema]) -> None:
        self._known = known
        self._made: set[str] = set()

    def of(self, schema: Schema, level: int) -> Schema:
        if isinstance(schema, list):
            return [self.of(each, level) for each in schema]
        if isinstance(schema, str):
            return self.of(self._known[schema], level) if schema in self._known else schema
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema, level)
        if kind in ("enum", "fixed"):
            return self._once(schema["name"], {key: schema[key] for key in _KEPT if key in schema})
        if kind == "array":
            return {"type": kind, "items": self.of(schema["items"], level)}
        if kind == "map":
            return {"type": kind, "values": self.of(schema["values"], level)}
        if isinstance(kind, str) and kind not in self._known:
            return {key: schema[key] for key in _KEPT if key in schema}
        return self.of(kind, level)

    def _record(self, schema: Schema, level: int) -> Schema:
        if level == _MAX_LEVELS:
            return self._once(str(_TOO_DEEP["name"]), _TOO_DEEP)
        name = f"{schema['name']}_{level}"
        if name in self._made:
            return name
        self._made.add(name)
        if len(self._made) > _MAX_TYPES:
            raise SchemaError(f"it has more than {_MAX_TYPES:,} types")
        fields = [
            {"name": field["name"], "type": self.of(field["type"], level + 1)} for field in schema["fields"]
        ]
        return {"type": "record", "name": name, "fields": fields}

    def _once(self, name: str, schema: Schema) -> Schema:
        """A named type where it comes first, its name from then on."""
        if name in self._made:
            return name
        self._made.add(name)
        return schema


def _only(schema: Schema, wanted: Collection[str]) -> Schema:
    """A record with these fields alone; any other type as it is."""
    if not isinstance(schema, dict) or schema["type"] not in ("record", "error"):
        return schema
    return {**schema, "fields": [field for field in schema["fields"] if field["name"] in wanted]}


def least_bytes(schema: Schema, known: dict[str, int]) -> int:
    """Least number of bytes that a value takes. known: of named types, which come before they are referred to

    raises: SchemaError for a list whose items may take none: a few bytes would make any number of them
    """
    if isinstance(schema, list):
        return 1 + min((least_bytes(each, known) for each in schema), default=0)
    if isinstance(schema, str):
        return known.get(schema, _LEAST_BYTES.get(schema, 1))
    kind = schema["type"]
    if kind == "record":
        known[schema["name"]] = sum(least_bytes(field["type"], known) for field in schema["fields"])
        return known[schema["name"]]
    if kind == "fixed":
        known[schema["name"]] = schema["size"]
        return int(schema["size"])
    if kind == "array" and least_bytes(schema["items"], known) == 0:
        raise SchemaError("it has a list whose items take no bytes")
    if kind == "map":
        least_bytes(schema["values"], known)
    return _LEAST_BYTES.get(kind, 1)


def has_other_values(schema: Schema) -> bool:
    """Whether values of an unfolded schema may be of types that JSON does not have."""
    if isinstance(schema, list):
        return any(map(has_other_values, schema))
    if isinstance(schema, str):
        return schema == "bytes"
    kind = schema["type"]
    if kind == "record":
        return any(has_other_values(field["type"]) for field in schema["fields"])
    if kind in ("array", "map"):
        return has_other_values(schema["items" if kind == "array" else "values"])
    return kind in ("bytes", "fixed") or "logicalType" in schema


def plain(value: Any) -> Any:
    """The value with types that JSON has. Bytes become an object, so that they are no text.

    >>> plain({"at": date(2020, 2, 12), "raw": b"7"})
    {'at': '2020-02-12', 'raw': {'base64': 'Nw=='}}
    """
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    return {"base64": b64encode(value).decode()} if isinstance(value, bytes) else value
