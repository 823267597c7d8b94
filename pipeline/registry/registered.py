"""Reads messages of one form, such as Avro, whose schemas a registry holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from confluent_kafka.schema_registry import Schema

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, UnreadableError
from twinsieve.pipeline.broker.records import AbortableError
from twinsieve.pipeline.registry.framing import Framed
from twinsieve.pipeline.registry.schemas import Registry, SchemaError

_UNKNOWN_S = 30.0
"""For how long an unknown id is not asked for again: strangers may write any number."""
_MOST_UNKNOWN = 1_000
_MOST_SCHEMAS = 1_000
_UNTOLD = "AVRO"
"""Kind of a schema whose kind the registry does not tell, as that of Avro. If one tells no kinds at all,
reading the schema shows whether it is of the form."""
Reader = Callable[[Framed], Any]
"""Makes the document of a value. Whatever it raises, but MemoryError, means that the value does not fit."""


class Form(Protocol):
    """How values of a form are read.

    title: its name; kind: its name in the registry
    text: in which format its schemas are asked for; None: as they were registered
    """

    title: str
    kind: str
    text: str | None

    def reader(self, schema: Schema, imports: Iterable[tuple[str, Schema]], /) -> Reader:
        """What reads values of this schema, with at least the fields that are wanted.

        imports: the schemas that it refers to (`Registry.imports`)
        raises: SchemaError for a schema whose values cannot be read safely, and anything for no schema at all
        """


class RegisteredValues:
    """Each schema is asked for once."""

    def __init__(self, registry: Registry, form: Form) -> None:
        self._registry = registry
        self._form = form
        self._readers: dict[int | str, Reader] = {}
        self._refused: dict[int | str, tuple[float, str]] = {}
        """Of each schema that cannot be used: until when it is not asked for again, and why."""

    def decode(self, message: Framed) -> Any:
        """The document of a message.

        raises: UnreadableError; AbortableError if the registry does not answer
        """
        read = self._reader(message.schema)
        try:
            return read(message)
        except MemoryError:
            raise
        except Exception as error:
            # Damaged bytes give errors of any kind. Only the text of ours shows nothing of the message.
            why = str(error) if isinstance(error, LeftoverError) else type(error).__name__
            raise UnreadableError(
                DeadLetterReason.INVALID_VALUE, f"is no {self._form.title} of schema {message.schema} ({why})"
            ) from error

    def _reader(self, number: int | str) -> Reader:
        reader = self._readers.get(number)
        if reader is not None:
            return reader
        until_s, why = self._refused.get(number, (0.0, ""))
        if time.monotonic() >= until_s:
            try:
                reader = self._made(number)
            except SchemaError as error:
                why = str(error)
                if len(self._refused) >= _MOST_UNKNOWN:
                    self._refused.clear()
                self._refused[number] = (time.monotonic() + _UNKNOWN_S, why)
            else:
                if len(self._readers) >= _MOST_SCHEMAS:
                    self._readers.clear()
                self._readers[number] = reader
                return reader
        raise UnreadableError(DeadLetterReason.UNKNOWN_SCHEMA, f"is of a schema that cannot be used: {why}")

    def _made(self, number: int | str) -> Reader:
        form = self._form
        schema = self._registry.schema(number, form.text)
        kind = schema.schema_type or _UNTOLD
        if kind not in (form.kind, _UNTOLD):
            raise SchemaError(f"schema {number} is {kind}, not {form.kind}")
        try:
            return form.reader(schema, self._registry.imports(schema, form.text))
        except (SchemaError, AbortableError):
            raise
        except Exception as error:
            # Not every registry checks schemas, and libraries raise what their parts raise.
            why = type(error).__name__
            raise SchemaError(f"schema {number} is no schema of {form.title} ({why})") from error


class LeftoverError(ValueError):
    """A value goes on behind its end."""
