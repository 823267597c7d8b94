"""Detects fields that the settings name but that no message has had so far, probably because of a typo."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from twinsieve.pipeline.basics.closest import closest
from twinsieve.pipeline.messages.documents import Documents, objects_of
from twinsieve.pipeline.messages.paths import EACH, MISSING, Path, field_at, list_of, name_of

STOPPING = frozenset({"scope", "exact.fields"})
"""If a field in one of these settings is misspelt, messages that are no duplicates would be dropped. So a run
over files ends with an error."""

TEXT = "input.text_field"

_EFFECTS = {
    "scope": "so messages of all scopes meet",
    "exact.fields": "so none has a key",
    TEXT: "so nothing of it is compared",
    "input.id_field": "so none has an id",
    "input.time_field": "so none has a time",
}
ENOUGH_ROWS = 1000
"""If none of this many messages has a field, the field counts as missing; with fewer messages it may still
come."""

_LOOKED_AT = 100
_SHOWN_NAMES, _SHOWN_CHARACTERS = 12, 60
_MAX_NAMES = 1_000
"""At most this many field names are examined, because a message from outside may have any number of them."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """A field that none of `count` messages has.

    setting: the settings key that names the field; name: the field's name
    there: names that messages have at that place instead
    meant: the most similar name that messages have, or None
    held: number of such fields in one message at most; more than 1 if `meant` is in each item of a list
    spare: whether it is for the text, and messages have had another field of the text
    """

    setting: str
    name: str
    count: int
    there: tuple[str, ...]
    meant: str | None
    held: int = 1
    spare: bool = False

    @property
    def advice(self) -> str | None:
        """A question after the field that was meant, or None."""
        if self.meant is None:
            return None
        several = f"one holds up to {self.held:,} of them: " if self.held > 1 else ""
        return f"{several}did you mean {quoted(self.meant)}?"

    def line(self, messages: str) -> str:
        """One line with the problem and what to do.

        messages: the word for them in the text, such as "rows"
        """
        advice = self.advice or f"name another in {self.setting}"
        effect = _EFFECTS[self.setting]
        none = (
            f"none of the first {self.count:,} {messages} has the field {quoted(self.name)} of {self.setting}"
        )
        return f"{none}{but_these(self.there)}, {effect}; {advice}"


def but_these(names: Sequence[str]) -> str:
    """The end of an error text that lists the names which exist instead; "" for no names.

    >>> but_these(["id", "body"])
    " but 'id', 'body'"
    """
    shown = ", ".join(quoted(name) for name in names[:_SHOWN_NAMES])
    more = ", …" if len(names) > _SHOWN_NAMES else ""
    return f" but {shown}{more}" if shown else ""


def quoted(name: str) -> str:
    """The name of a field, cut short, quoted and escaped: in messages from outside it may hold anything."""
    return repr(name if len(name) <= _SHOWN_CHARACTERS else f"{name[:_SHOWN_CHARACTERS]}…")


class FieldWatch:
    """Watches fields until each was seen once, and reports the fields not seen so far.

    It reports after the first messages, and whenever their number has passed another power of ten.

    fields: the settings key and the path of each field
    flat: every path is one plain name
    lists: settings whose fields may be in each item of a list; for others the first item is proposed
    """

    def __init__(
        self, fields: Sequence[tuple[str, Path]], *, flat: bool, lists: Collection[str] = ()
    ) -> None:
        self._lists = lists
        self._unseen = list(fields)
        self._texts = sum(setting == TEXT for setting, _ in fields)
        self._flat = flat
        self._count = 0
        self._next = 1

    def look(self, documents: Documents) -> list[Unseen]:
        """The fields to report now; usually none.

        documents: the next ones; those that are no objects are ignored
        """
        if not self._unseen:
            return []
        self._unseen = [
            (setting, path)
            for setting, path in self._unseen
            if all(value is MISSING for value in documents.values(path))
        ]
        self._count += sum(1 for _ in objects_of(documents)) if self._unseen else len(documents)
        if self._count < self._next:
            return []
        while self._next <= self._count:
            self._next *= 10
        objects = list(islice(objects_of(documents), _LOOKED_AT)) if self._unseen else []
        return [self._unseen_field(setting, path, objects) for setting, path in self._unseen]

    def _unseen_field(self, setting: str, path: Path, objects: list[Any]) -> Unseen:
        parent = path
        beside: list[Path] = []
        item = EACH if setting in self._lists else 0
        while not beside and parent:
            parent = parent[:-1]
            beside = _below(objects, parent, item)
        there = [self._name(path_) for path_ in beside]
        below = (path_ for outer in beside if not self._flat for path_ in _deeper(objects, outer, item))
        deeper = islice(below, _MAX_NAMES)
        meant = self._nearest(path, [*beside, *deeper])
        return Unseen(
            setting,
            self._name(path),
            self._count,
            tuple(there),
            None if meant is None else self._name(meant),
            1 if meant is None else _held(objects, meant),
            setting == TEXT and sum(each == TEXT for each, _ in self._unseen) < self._texts,
        )

    def _nearest(self, path: Path, paths: list[Path]) -> Path | None:
        """The path whose name is most similar to that of the path, or None.

        A member whose name is the whole path, with its dots, comes first: the user probably meant that one.
        """
        written = ".".join(map(str, path))
        if (written,) in paths:
            return (written,)
        named = {self._name(candidate): candidate for candidate in paths[:_MAX_NAMES]}
        close = closest(self._name(path), list(named))
        if close is not None:
            return named[close]
        return next((candidate for candidate in paths if candidate[-1] == path[-1]), None)

    def _name(self, path: Path) -> str:
        return str(path[0]) if self._flat else name_of(path)


def _held(objects: list[Any], path: Path) -> int:
    """Most items in one object of the list of which a path names each; 1 if it names none."""
    each = list_of(path)
    if each is None:
        return 1
    lists = (field_at(document, each) for document in objects)
    return max((len(items) for items in lists if isinstance(items, list)), default=1)


def _deeper(objects: list[Any], path: Path, item: int) -> Iterator[Path]:
    """Paths below a path, and those below the items of a list there."""
    for path_ in _below(objects, path, item):
        yield path_
        if isinstance(path_[-1], int):
            yield from _below(objects, path_, item)


def _below(objects: list[Any], path: Path, item: int) -> list[Path]:
    """Paths of the members directly below a path, over all messages, in order; at most _MAX_NAMES.

    item: stands for the items of a list
    """
    paths: dict[Path, None] = {}
    for document in objects:
        value = field_at(document, path)
        if isinstance(value, dict):
            paths |= {(*path, name): None for name in islice(value, _MAX_NAMES)}
        elif isinstance(value, list) and value:
            paths[(*path, item)] = None
        if len(paths) > _MAX_NAMES:
            break
    return list(paths)[:_MAX_NAMES]
