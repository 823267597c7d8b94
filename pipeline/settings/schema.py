"""The keys of `Settings`: their dotted names, their kinds, and suggestions for misspelt keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from twinsieve.pipeline.basics.closest import closest
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.values import Written

SECRETS = frozenset(
    {
        *("digest.seed", "kafka.security.password", "kafka.security.key_password", "state.key"),
        "input.registry.password",
    }
)
"""Keys that must not be in a settings file and are never shown. For each there is another key, `…_file`."""

_REMOVED = {
    "kafka.delivery": "delivery is always exactly-once now; remove the key",
    "text.body": "bodies are always made by the rule `product`; remove the key",
    "near.number_guard": "numbers are one of the differences; write near.differences: guards (or off)",
    "near.card_guard": "cards are one of the differences; write near.differences: guards (or off)",
    "near.shards": "write near.threads",
}
"""Keys of earlier versions, and what to do about each."""

FORMER: Mapping[str, Mapping[str, str]] = {
    "kafka.client": {
        "kafka-python": "",
        "confluent": "has no effect: kafka-python is the only client now; remove the key",
    },
}
"""Keys of the version before, and for each value that is still accepted and has no effect, the warning about
it; empty: none. The next version refuses the keys."""

Kind = Literal["section", "list", "mapping", "value"]


@cache
def declared() -> dict[str, FieldInfo]:
    """Every dotted key, sections included, with its declaration, in the order of the schema."""
    return dict(_below(Settings, ""))


@cache
def schema() -> dict[str, Kind]:
    """Every dotted key, sections included, with its kind, in the order of the schema."""
    return {key: _kind(info.annotation) for key, info in declared().items()}


def _below(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, info in model.model_fields.items():
        key = prefix + (info.alias or name)
        yield key, info
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from _below(info.annotation, f"{key}.")


def _kind(annotation: Any) -> Kind:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    kinds: dict[Any, Kind] = {tuple: "list", dict: "mapping"}
    return kinds.get(get_origin(annotation), "value")


def keys_below(section: str) -> list[str]:
    """Names that may stand directly below a section ("" for the top)."""
    return [key.rpartition(".")[2] for key in schema() if key.rpartition(".")[0] == section]


def did_you_mean(section: str, name: str) -> str:
    """Advice for an unknown key: remove it, write it nested, use the most similar key, or use one of the keys
    of this section.

    section: dotted name of the section in which it was written; "" for the top
    """
    if "." in name and f"{section}.{name}".removeprefix(".") in schema():
        *above, last = name.split(".")
        return f"write it nested: {': {'.join(above)}: {{{last}: …{'}' * len(above)}"
    if f"{section}.{name}" in _REMOVED:
        return _REMOVED[f"{section}.{name}"]
    here = keys_below(section)
    if close := closest(name, here):
        return f"did you mean {close!r}?"
    elsewhere = [key for key in schema() if key.rpartition(".")[2] == name]
    if elsewhere:
        return f"did you mean {' or '.join(elsewhere)}?"
    leaves = {key.rpartition(".")[2]: key for key in schema()}
    if close := closest(name, leaves, cutoff=0.8):
        return f"did you mean {leaves[close]}?"
    return f"known here: {', '.join(here)}"


def literals(key: str) -> tuple[str, ...]:
    """The words of which a key, or an entry of its list, must be one; () if the key accepts other values."""
    info = declared().get(key) or declared().get(key.rpartition(".")[0])
    annotation: Any = None if info is None else info.annotation
    if get_origin(annotation) is tuple:
        annotation = get_args(annotation)[0]
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def written_as(info: FieldInfo) -> Written | None:
    """How values of the key's type are written; None if the type does not say."""
    return next((each for each in reversed(info.metadata) if isinstance(each, Written)), None)


def is_expert(info: FieldInfo) -> bool:
    """Whether the key is rarely needed (`expert` of `setting`)."""
    return bool((info.json_schema_extra or {}).get("expert"))  # type: ignore[union-attr]
