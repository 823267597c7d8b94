"""Settings as they were written: text values, each with its place, and the problems found so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from twinsieve.stages.errors import without_secrets

KeyPath = tuple[str | int, ...]
Raw = str | None | list["Raw"] | dict[str, "Raw"]


class Location(NamedTuple):
    """Where a setting was written. source: a file (line and column count from 1), or a variable or flag"""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class Finding(NamedTuple):
    """One problem of the settings and its place."""

    place: Location
    message: str

    def __str__(self) -> str:
        return without_secrets(f"{self.place}: {self.message}")


@dataclass(slots=True)
class Tree:
    """Settings as they were written, before they are checked.

    base: folder to which file names in the settings file are relative
    values: nested mappings, lists and texts
    places, key_places: where each value, and each key, was written
    findings: the problems so far
    """

    base: Path = Path()
    values: dict[str, Raw] = field(default_factory=dict)
    places: dict[KeyPath, Location] = field(default_factory=dict)
    key_places: dict[KeyPath, Location] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def find(self, place: Location, message: str) -> None:
        """Add a problem."""
        self.findings.append(Finding(place, message))


def dotted(path: KeyPath) -> str:
    """The path with dots, as `near.window.messages`."""
    return ".".join(str(part) for part in path)
