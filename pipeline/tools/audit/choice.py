"""Choose drops: by their own position or id, by their leader, or by a text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinsieve.pipeline.why.drops import Drop, Place
from twinsieve.stages.errors import UsageError

_MOST_DIGITS = 19
_LINE = re.compile(rf"(\d{{1,{_MOST_DIGITS}}})(?:\[(\d{{1,{_MOST_DIGITS}}})\])?")
"""A line, perhaps with an item of a list in it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a drop must be to be chosen. None asks nothing.

    position: number of its row, INPUT:LINE, INPUT:LINE[ITEM] for an item of a list, or
        topic[partition]@offset; id_: its id; leader: the same of its leader, or its id
    search: equal characters in its text or its leader's, in upper or lower case

    A number may have zeros in front.
    raises: UsageError for a position that is neither a number nor INPUT:LINE
    """

    position: str | None = None
    id_: str | None = None
    leader: str | None = None
    search: str | None = None

    def __post_init__(self) -> None:
        if self.position is not None and not _is_number(self.position):
            source, line, _ = _split(self.position)
            if not source or line is None:
                raise UsageError(
                    f"--position {self.position!r}: name the row by its number, or as INPUT:LINE, as in "
                    "posts.jsonl:17, or posts.jsonl:17[3] for an item of a list"
                )

    @property
    def is_open(self) -> bool:
        """Whether all drops are chosen."""
        return all(asked is None for asked in (self.position, self.id_, self.leader, self.search))

    def takes(self, drop: Drop) -> bool:
        """Whether this drop is chosen."""
        message, leader = drop.message, drop.leader
        if self.position is not None and not _stands_at(message, self.position):
            return False
        if self.id_ is not None and message.id != self.id_:
            return False
        if self.leader is not None and (
            leader is None or not (leader.id == self.leader or _stands_at(leader, self.leader))
        ):
            return False
        if self.search is None:
            return True
        wanted = self.search.casefold()
        texts = [message.text, leader.text if leader is not None else None]
        return any(wanted in text.casefold() for text in texts if text is not None)

    def __str__(self) -> str:
        asked = {"position": self.position, "id": self.id_, "leader": self.leader, "text": self.search}
        return ", ".join(f"{name} {value!r}" for name, value in asked.items() if value is not None)


def _stands_at(place: Place, text: str) -> bool:
    """Whether the text is the number of this row, INPUT:LINE with or without an item, or
    topic[partition]@offset."""
    if _is_number(text):
        return place.position == int(text)
    source, line, element = _split(text)
    is_there = line is not None and (place.source, place.line) == (source, line)
    return is_there and element in (None, place.element)


def _split(text: str) -> tuple[str, int | None, int | None]:
    """Source and line of INPUT:LINE, INPUT:LINE[ITEM] or topic[partition]@offset, and the item.

    The line is None if it is no number.
    """
    source, _, line = text.replace("]@", "]:").rpartition(":")
    found = _LINE.fullmatch(line)
    if found is None:
        return source, None, None
    return source, int(found[1]), None if found[2] is None else int(found[2])


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MOST_DIGITS
