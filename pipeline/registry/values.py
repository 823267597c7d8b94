"""Chooses what reads the values of an input by its settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, Protocol

from twinsieve.pipeline.registry.framing import Framed
from twinsieve.pipeline.settings.model import InputSettings
from twinsieve.stages.errors import UsageError


class Said(Protocol):
    """`registered.Answer`, which cannot be imported without the extra."""

    @property
    def why(self) -> str: ...
    @property
    def is_said(self) -> bool: ...
    @property
    def is_busy(self) -> bool: ...
    @property
    def answers(self) -> bool: ...


class Heard(Protocol):
    """When a registry answered: `schemas.Registry`."""

    heard_s: float
    answering_s: float


class Values(Protocol):
    """Reads messages that are no JSON: `registered.RegisteredValues`."""

    asks: bool

    @property
    def registry(self) -> Heard: ...
    def decode(self, message: Framed) -> Any: ...
    def knows(self, number: int | str) -> bool: ...
    def ask(self, number: int | str) -> Said: ...
    def remember(self, number: int | str, answer: Any) -> None: ...
    def forget(self, needed: Collection[int | str]) -> None: ...


def values_of(
    source: InputSettings, wanted: Collection[str], now_s: Callable[[], float] = time.monotonic
) -> Values | None:
    """What reads the messages of this input; None if they are JSON or text.

    wanted: names of the fields of a message that are read; now_s: a monotonic clock
    raises: UsageError if a package is missing
    """
    if source.encoding not in ("avro", "protobuf"):
        return None
    try:
        from twinsieve.pipeline.registry.registered import Form, RegisteredValues
        from twinsieve.pipeline.registry.schemas import Registry

        form: Form
        if source.encoding == "avro":
            from twinsieve.pipeline.registry.avro import Avro

            form = Avro(wanted)
        else:
            from twinsieve.pipeline.registry.protobuf import Protobuf

            form = Protobuf(wanted)
    except ImportError as error:
        raise UsageError(
            f"input.encoding: {source.encoding} needs the package {error.name}; in a checkout: "
            "pip install '.[registry]'"
        ) from error
    return RegisteredValues(Registry(source.registry, now_s), form, now_s)
