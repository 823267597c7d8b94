"""Chooses what reads the values of an input by its settings."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from twinsieve.pipeline.registry.framing import Framed
from twinsieve.pipeline.settings.model import InputSettings
from twinsieve.stages.errors import UsageError


class Values(Protocol):
    """Reads messages that are no JSON."""

    def decode(self, message: Framed) -> Any:
        """The document of a message, with at least the wanted fields.

        raises: UnreadableError; AbortableError if the registry does not answer
        """


def values_of(source: InputSettings, wanted: Collection[str]) -> Values | None:
    """What reads the messages of this input; None if they are JSON or text.

    wanted: names of the fields of a message that are read
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
    return RegisteredValues(Registry(source.registry), form)
