"""Fields that settings name and no message has had so far: misspelt, most likely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any

from twinsieve.pipeline.messages.paths import MISSING, Path, field_at, name_of

STOPPING = frozenset({"scope", "exact.fields"})
"""Settings whose misspelt field would lose messages of others: on files the run ends."""

TEXT = "input.text_field"

_EFFECTS = {
    "scope": "so messages of all scopes meet",
    "exact.fields": "so none has a key",
    TEXT: "so nothing of it is compared",
    "input.id_field": "so none has an id",
    "input.time_field": "so none has a time",
}
ENOUGH_ROWS = 1000
"""A field that none of this many has is missing; where fewer were seen it may still come."""

_LOOKED_AT = 100
_SHOWN_NAMES, _SHOWN_CHARACTERS = 12, 60
_MAX_NAMES = 1_000
"""Names of strangers that are looked at: a message may have as many as its bytes allow."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """A field that none of `count` messages has.

    setting: that names the field; there: names beside which it would stand; meant: the nearest name, or None
    """

    setting: str
    name: str
    count: int
    there: tuple[str, ...]
    meant: str | None

    def line(self, messages: str) -> str:
        """What is wrong and what to do, in one line; messages: what they are called."""
        advice = f"did you mean {_shown(self.meant)}?" if self.meant else f"name another in {self.setting}"
        effect = _EFFECTS[self.setting]
        none = (
            f"none of the first {self.count:,} {messages} has the field {_shown(self.name)} of {self.setting}"
        )
        return f"{none}{but_these(self.there)}, {effect}; {advice}"


def but_these(names: Sequence[str]) -> str:
    """What there is instead, behind what there is not; nothing where no name is known.

    >>> but_these(["id", "body"])
    " but 'id', 'body'"
    """
    shown = ", ".join(_shown(name) for name in names[:_SHOWN_NAMES])
    more = ", …" if len(names) > _SHOWN_NAMES else ""
    return f" but {shown}{more}" if shown else ""


def _shown(name: str) -> str:
    """The name, quoted and escaped: strangers write as long names as they like, and anything into them."""
    return repr(name if len(name) <= _SHOWN_CHARACTERS else f"{name[:_SHOWN_CHARACTERS]}…")


class FieldWatch:
    """Looks for the fields until each was seen once; tells of the others at first, and with every tenfold.

    fields: (setting, path) of each; flat: paths are names of one part
    """

    def __init__(self, fields: Sequence[tuple[str, Path]], *, flat: bool) -> None:
        self._unseen = list(fields)
        self._flat = flat
        self._count = 0
        self._next = 1

    def look(self, documents: Sequence[Any]) -> list[Unseen]:
        """What is to be told now, mostly nothing; documents: of any kind, messages are mappings."""
        if not self._unseen:
            return []
        objects = [document for document in documents if isinstance(document, dict)]
        self._count += len(objects)
        self._unseen = [
            (setting, path)
            for setting, path in self._unseen
            if all(field_at(document, path) is MISSING for document in objects)
        ]
        if self._count < self._next:
            return []
        while self._next <= self._count:
            self._next *= 10
        return [self._unseen_field(setting, path, objects[:_LOOKED_AT]) for setting, path in self._unseen]

    def _unseen_field(self, setting: str, path: Path, objects: list[Any]) -> Unseen:
        parent = path
        beside: list[Path] = []
        while not beside and parent:
            parent = parent[:-1]
            beside = _below(objects, parent)
        there = [self._name(path_) for path_ in beside]
        below = (path_ for outer in beside if not self._flat for path_ in _below(objects, outer))
        deeper = islice(below, _MAX_NAMES)
        return Unseen(
            setting, self._name(path), self._count, tuple(there), self._nearest(path, [*beside, *deeper])
        )

    def _nearest(self, path: Path, paths: list[Path]) -> str | None:
        """A key that is called as the whole path is written comes first: its dots were meant as such."""
        written = ".".join(map(str, path))
        names = {
            self._name(candidate).lower(): self._name(candidate) for candidate in reversed(paths[:_MAX_NAMES])
        }
        if (written,) in paths:
            return self._name((written,))
        close = get_close_matches(self._name(path).lower(), list(names), n=1, cutoff=0.6)
        if close:
            return names[close[0]]
        leaves = [candidate for candidate in paths if candidate[-1] == path[-1]]
        return self._name(leaves[0]) if leaves else None

    def _name(self, path: Path) -> str:
        return str(path[0]) if self._flat else name_of(path)


def _below(objects: list[Any], path: Path) -> list[Path]:
    """Paths of what stands directly in the value there, over all of the messages, in order; not all."""
    paths: dict[Path, None] = {}
    for document in objects:
        value = field_at(document, path)
        if isinstance(value, dict):
            paths |= {(*path, name): None for name in islice(value, _MAX_NAMES)}
        elif isinstance(value, list) and value:
            paths[(*path, 0)] = None
        if len(paths) > _MAX_NAMES:
            break
    return list(paths)[:_MAX_NAMES]
