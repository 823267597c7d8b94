"""Reads messages of one form, such as Avro, whose schemas a registry holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple, Protocol

from confluent_kafka.schema_registry import Schema

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, UnreadableError
from twinsieve.pipeline.broker.records import AbortableError
from twinsieve.pipeline.registry.framing import Framed
from twinsieve.pipeline.registry.schemas import Registry, SchemaError, SilentError

_UNKNOWN_S = 30.0
"""For how long an unknown id is not asked for again: strangers may write any number."""
_MOST_UNKNOWN = 1_000
_MOST_SCHEMAS = 1_000
_UNTOLD = "AVRO"
"""Kind of a schema whose kind the registry does not tell, as that of Avro. If one tells no kinds at all,
reading the schema shows whether it is of the form."""
Reader = Callable[[Framed], Any]
"""Makes the document of a value. Whatever it raises, but MemoryError, means that the value does not fit."""


class Answer(NamedTuple):
    """What came of asking for a schema.

    reader: what reads its values; None without one; why: why there is none
    is_said: whether the registry said so; else it said nothing about this schema
    is_busy, answers: as for `SilentError`
    """

    reader: Reader | None
    why: str = ""
    is_said: bool = True
    is_busy: bool = False
    answers: bool = True


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
    """Each schema is asked for once: by `decode`, or beside it (`AskedBeside`).

    now_s: a monotonic clock; asks: whether `decode` asks for a schema that was not asked for before
    """

    def __init__(self, registry: Registry, form: Form, now_s: Callable[[], float] = time.monotonic) -> None:
        self.registry = registry
        self.asks = True
        self._form = form
        self._now_s = now_s
        self._readers: dict[int | str, Reader] = {}
        self._refused: dict[int | str, tuple[float, str]] = {}
        """Of each schema that cannot be used: until when it is not asked for again, and why."""

    def decode(self, message: Framed) -> Any:
        """The document of a message.

        raises: UnreadableError; AbortableError if it is asked for, and the registry answers nothing
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

    def knows(self, number: int | str) -> bool:
        """Whether it is known what this schema is, or why it cannot be used."""
        return number in self._readers or number in self._refused

    def ask(self, number: int | str) -> Answer:
        """What the registry says of a schema; any thread may ask."""
        try:
            return Answer(self._made(number))
        except SchemaError as error:
            return Answer(None, str(error))
        except SilentError as error:
            return Answer(None, str(error), is_said=False, is_busy=error.is_busy, answers=error.answers)

    def remember(self, number: int | str, answer: Answer) -> None:
        """Keep what was said of a schema."""
        if answer.reader is not None:
            self._readers[number] = answer.reader
        else:
            self._refused[number] = (self._now_s() + _UNKNOWN_S, answer.why)

    def forget(self, needed: Collection[int | str] = ()) -> None:
        """Forget what is too old or too much, the oldest first, but not what a waiting message needs."""
        now_s = self._now_s()
        spare = [number for number in self._refused if number not in needed]
        for place, number in enumerate(spare):
            if place < len(spare) - _MOST_UNKNOWN or self._refused[number][0] <= now_s:
                del self._refused[number]
        if len(self._readers) > _MOST_SCHEMAS:
            spare = [number for number in self._readers if number not in needed]
            for number in spare[: len(self._readers) - _MOST_SCHEMAS]:
                del self._readers[number]

    def _reader(self, number: int | str) -> Reader:
        reader = self._readers.get(number)
        if reader is not None:
            return reader
        if self.asks:
            self.forget()
            if number not in self._refused:
                answer = self.ask(number)
                if not answer.answers:
                    raise AbortableError(answer.why)
                if answer.is_said:
                    self.remember(number, answer)
                if answer.reader is not None:
                    return answer.reader
        if number not in self._refused:
            raise UnreadableError(
                DeadLetterReason.SCHEMA_UNANSWERED,
                f"is of schema {number}, about which the registry says nothing",
            )
        why = self._refused[number][1]
        raise UnreadableError(DeadLetterReason.UNKNOWN_SCHEMA, f"is of a schema that cannot be used: {why}")

    def _made(self, number: int | str) -> Reader:
        form = self._form
        schema = self.registry.schema(number, form.text)
        kind = schema.schema_type or _UNTOLD
        if kind not in (form.kind, _UNTOLD):
            raise SchemaError(f"schema {number} is {kind}, not {form.kind}")
        try:
            return form.reader(schema, self.registry.imports(schema, form.text))
        except (SchemaError, AbortableError):
            raise
        except Exception as error:
            # Not every registry checks schemas, and libraries raise what their parts raise.
            why = type(error).__name__
            raise SchemaError(f"schema {number} is no schema of {form.title} ({why})") from error


class LeftoverError(ValueError):
    """A value goes on behind its end."""
