"""Read the rows of a `--duplicates` file (docs/FILES.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from twinsieve.pipeline.basics.printable import beginning
from twinsieve.pipeline.files.rows import split_lines
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.messages.fields import id_text
from twinsieve.pipeline.messages.spelling import decoded
from twinsieve.pipeline.messages.verdict_values import LIKENESS_WORDS
from twinsieve.stages.errors import UsageError, shown

_STAGES = ("exact", "near")
_NEEDED = ("position", "duplicate_of", "stage", "text")
_LIKENESSES = ("similarity", "distance", "shared")
_MOST = 1_000_000
MOST_OF_NAME = 160
"""So many characters of an id, a name or a reason are held at most where they are shown."""
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
_MAX_BYTES = 1 << 28
"""Longest line; a row holds two texts."""


@dataclass(frozen=True, slots=True)
class Place:
    """A message of a run. What the file does not say is None.

    position: number of the row in the run, from 1; id: as text; source, line: its input, and the line there.
        A message of a topic has no position, its source is a partition, as posts[0], and its line an offset
    element: its index in a list of that line, if it is an item there
    """

    position: int | None
    id: str | None
    source: str | None
    line: int | None
    text: str | None
    element: int | None = None

    def __str__(self) -> str:
        joint = "@" if self.position is None and (self.source or "").endswith("]") else ":"
        item = "" if self.element is None else f"[{self.element}]"
        where = (
            f"{self.source}{joint}{self.line}{item}" if self.source is not None else f"row {self.position}"
        )
        return f"{where} (id {self.id})" if self.id is not None else where

    def cut(self, most: int) -> Place:
        """The place with only the first `most` characters of its text, and at most 160 of id and source."""
        return replace(
            self,
            id=None if self.id is None else beginning(self.id, MOST_OF_NAME),
            source=None if self.source is None else beginning(self.source, MOST_OF_NAME),
            text=None if self.text is None else beginning(self.text, most),
        )


@dataclass(frozen=True, slots=True)
class Drop:
    """A dropped message and its leader.

    leader: None if only the Bloom filter knows the earlier copy
    stage: exact or near; measure, likeness: name of the measure of likeness and its value
    time_ms: time of the message, ms since 1970; None if it has none
    """

    message: Place
    leader: Place | None
    stage: str
    measure: str
    likeness: float
    flags: tuple[str, ...]
    time_ms: int | None = None

    @property
    def degree(self) -> str:
        """How alike the two are, in words; `to` and the leader may follow."""
        if self.stage == "exact":
            return "exact: equal"
        if self.measure == "similarity":
            return f"near: {self.likeness:.4g} similar"
        return f"near: {self.likeness:g} {LIKENESS_WORDS[self.measure]}"

    def cut(self, most: int) -> Drop:
        """The drop with only the first characters of both texts, and of ids and sources."""
        leader = None if self.leader is None else self.leader.cut(most)
        return replace(self, message=self.message.cut(most), leader=leader)


def read_drops(name: str) -> Iterator[Drop]:
    """All rows of the file, plain or packed, in its order.

    raises: UsageError, which names path and line, for a row of another kind; FileError if the file cannot be
        read
    """
    for place, said in read_objects(name, "dedup --duplicates"):
        yield _drop(said, place)


def read_objects(name: str, writer: str) -> Iterator[tuple[str, object]]:
    """The value of each line that is not blank, with its path and line for errors.

    writer: the command and flag that wrote the file, for errors
    raises: UsageError for a line that is not JSON or too long; FileError if the file cannot be read
    """
    path = shown(name)
    with InputSource(name) as source:
        for rows in split_lines(source.blocks(), _MAX_BYTES):
            for number, row in enumerate(rows.rows, start=rows.line):
                place = f"{path}:{number}"
                if row is None:
                    raise UsageError(f"{place}: is longer than {_MAX_BYTES >> 20} MiB")
                if row.strip():
                    try:
                        said = decoded(row)
                    except (ValueError, RecursionError) as error:
                        raise UsageError(
                            f"{place}: is not JSON; give the file that {writer} wrote"
                        ) from error
                    yield place, said


def find_drop(name: str, *, id_: str | None, position: int | None) -> Drop | None:
    """The first row of the file with this id or position, else None. raises: as `read_drops`"""
    for drop in read_drops(name):
        if drop.message.position == position if id_ is None else drop.message.id == id_:
            return drop
    return None


def _drop(said: object, place: str) -> Drop:
    known = isinstance(said, dict) and all(key in said for key in _NEEDED) and said["stage"] in _STAGES
    if not known or not isinstance(said, dict):
        raise UsageError(f"{place}: is not a dropped row; give the file that dedup --duplicates wrote")
    measure = measure_of(said)
    flags = said.get("flags") or []
    if measure is None or not isinstance(flags, list):
        raise UsageError(f"{place}: does not say how similar the two are; give what dedup --duplicates wrote")
    leader = None
    if said["duplicate_of"] is not None:
        leader = place_of(said, "duplicate_of", "duplicate_of_id", "leader_")
    return Drop(
        place_of(said, "position", "id"),
        leader,
        said["stage"],
        measure,
        float(said[measure]),
        tuple(beginning(str(flag), MOST_OF_NAME) for flag in flags),
        time_of(said),
    )


def place_of(said: dict[str, Any], position: str, id_: str, before: str = "") -> Place:
    """The message that these members of a row name. A member of another type counts as missing.

    before: what stands before the names of the other members: source, line, text, element
    """
    source, text = said.get(f"{before}source"), said.get(f"{before}text")
    return Place(
        _count(said.get(position)),
        id_text(said.get(id_)),
        source if isinstance(source, str) else None,
        _count(said.get(f"{before}line")),
        text if isinstance(text, str) else None,
        _count(said.get(f"{before}element")),
    )


def _count(value: object) -> int | None:
    """The value if it is a number that counts something and fits 64 bits, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None


def measure_of(said: dict[str, Any]) -> str | None:
    """The member that says how alike two messages are: similarity, distance or shared; None without."""
    return next((key for key in _LIKENESSES if _is_number(said.get(key))), None)


def time_of(said: dict[str, Any]) -> int | None:
    """The time of the message if the row has one and a calendar has it: from year 1 to 9999."""
    value = said.get("time_ms")
    is_time = isinstance(value, int) and not isinstance(value, bool) and _FIRST_MS <= value <= _LAST_MS
    return value if is_time else None


def _is_number(value: object) -> bool:
    """Whether this is a likeness: a number, finite, and not below 0."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MOST
