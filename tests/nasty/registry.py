"""A registry that knows the schemas of some messages, refuses others, is busy, and answers nothing for a while."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Literal
from unittest.mock import patch
from zlib import crc32

from tests.driver import World
from tests.twins import TinyScheme
from twinsieve.pipeline.basics.dead_letter_reasons import UnreadableError
from twinsieve.pipeline.broker.records import Header
from twinsieve.pipeline.messages.decode import Unreadable
from twinsieve.pipeline.messages.reader import MessageColumns, MessageReader
from twinsieve.pipeline.registry.beside import AskedBeside
from twinsieve.pipeline.registry.framing import Framed
from twinsieve.pipeline.registry.registered import Reader, RegisteredValues
from twinsieve.pipeline.registry.schemas import SchemaError, SilentError
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker import schema_holds
from twinsieve.pipeline.worker.record_reader import RecordReader

_SCHEMAS = 60
_LONGEST_GAP_S = 5.0
State = Literal["well", "busy", "silent"]


def schema_of(value: bytes | None) -> int | None:
    """The schema that a message has for the played registry; half of them have none."""
    number = crc32(value or b"") % (2 * _SCHEMAS)
    return number if value is not None and number < _SCHEMAS else None


@contextmanager
def unhurried() -> Iterator[None]:
    """Polls are of a few messages here, so that the time for second looks would be over before all are asked for."""
    with patch.object(schema_holds, "_SECOND_LOOK_S", math.inf):
        yield


class PlayedRegistry:
    """One registry for all workers. It knows no schema of each ten, and says nothing of another one."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self.state: State = "well"
        self.was_busy = False
        self.heard_s = self.answering_s = 0.0

    def schema(self, number: int | str, _: object) -> SimpleNamespace:
        """The schema with this id; refuses, is busy or is silent, as it was disturbed (`Registry.schema`)."""
        assert isinstance(number, int)
        if self.state == "silent":
            raise SilentError("no answer", is_busy=False, answers=False)
        self.answering_s += max(0.0, min(self._now_s() - self.heard_s, _LONGEST_GAP_S))
        self.heard_s = self._now_s()
        if self.state == "busy" or number % 10 == 0:
            raise SilentError("too many requests", is_busy=self.state == "busy", answers=True)
        if number % 10 == 1:
            raise SchemaError(f"schema {number} is not known")
        return SimpleNamespace(schema_type="AVRO")

    def imports(self, *_: object) -> dict[str, str]:
        """What a schema imports (`Registry.imports`): nothing."""
        return {}


class _Form:
    title = text = "played"
    kind = "AVRO"

    def reader(self, *_: object) -> Reader:
        return lambda _: None


class _Messages(MessageReader):
    """JSON, which is read only if its schema is known."""

    def schemas(
        self, messages: Sequence[bytes | None], headers: Sequence[Sequence[Header]]
    ) -> list[int | str | None]:
        return [schema_of(message) for message in messages]

    def read(
        self,
        messages: Sequence[bytes | None],
        unreadable: Mapping[int, Unreadable] | None = None,
        headers: Sequence[Sequence[Header]] | None = None,
    ) -> MessageColumns:
        values, bad = self.values, dict(unreadable or {})
        assert values is not None
        for row, message in enumerate(messages):
            schema = schema_of(message)
            if schema is not None:
                try:
                    values.decode(Framed(schema, None, b""))
                except UnreadableError as error:
                    bad[row] = Unreadable(row, error.reason, str(error))
        return super().read(messages, bad, headers)


class RegistryWorld(World):
    """A world whose messages need a registry."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.registry = PlayedRegistry(self.clock.monotonic_s)

    def has_schema(self, value: bytes | None) -> bool | None:
        schema = schema_of(value)
        if schema is None:
            return True
        if schema % 10 == 1:
            return False
        return None if schema % 10 == 0 or self.registry.was_busy else True

    def record_reader(self) -> RecordReader:
        messages = _Messages(Settings(), passes_null=True)
        values: Any = RegisteredValues(self.registry, _Form(), self.clock.monotonic_s)  # type: ignore[arg-type]
        messages.values = values
        asked = AskedBeside(values, self.clock.monotonic_s, lambda work: work())
        return RecordReader(messages, TinyScheme(), part="value", stamped=False, schemas=asked)

    def disturb(self, draw: random.Random) -> None:
        """It is well, takes no more requests, or answers nothing from now on."""
        self.registry.state = draw.choice(("well", "well", "well", "busy", "silent", "silent"))
        self.registry.was_busy |= self.registry.state == "busy"
