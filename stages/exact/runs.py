"""Runs: what was kept from one kept number to another, so that a save writes what is new.

A run is a part of a saved state (keys), or a file (kept messages). The name of a part says which numbers it
has; of one sieve, runs of the same numbers are the same.

>>> names = ["keys-0-8", "keys-8-9", "keys-0-9", "bloom-0"]
>>> covering(runs_in(names, "keys"), 0, 9)
[Run(first=0, end=9)]
>>> covering(runs_in(names[:1], "keys"), 2, 9), covering(runs_in(names[:1], "keys"), 8, 9)
([Run(first=0, end=8)], [])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple, Protocol, TypeVar

from twinsieve.stages.errors import StateError
from twinsieve.stages.exact.sections import Sections

FAN_IN = 16
"""This many neighbouring runs of similar length are joined into one."""


class Span(Protocol):
    """Has the kept numbers from `first` to `end` (exclusive)."""

    @property
    def first(self) -> int: ...

    @property
    def end(self) -> int: ...


_Span = TypeVar("_Span", bound=Span)


class Run(NamedTuple):
    """The kept numbers from `first` to `end` (exclusive)."""

    first: int
    end: int

    def named(self, kind: str) -> str:
        """The name of its part. kind: `keys` or `head`"""
        return f"{kind}-{self.first}-{self.end}"


class FrozenPart(NamedTuple):
    """A part of a frozen state.

    name: no other content ever has it; read: returns its sections; it may be called later and in any thread.
        raises: StateError if they are no longer in memory
    """

    name: str
    read: Callable[[], Sections]


class FrozenStage(NamedTuple):
    """An exact stage at one moment.

    sections: what is small, as copies
    parts: by the prefix under which their sections are read (`3`, `run0`): what never changes
    """

    sections: Sections
    parts: dict[str, FrozenPart]

    def whole(self) -> Sections:
        """All sections, those of the parts with their prefix."""
        whole = dict(self.sections)
        for prefix, part in self.parts.items():
            whole |= {f"{prefix}.{name}": array for name, array in part.read().items()}
        return whole


def runs_in(names: Iterable[str], kind: str, first: int = 0) -> list[Run]:
    """The runs of this kind among the names of parts, without those that begin before number `first`."""
    name = re.compile(rf"{kind}-([0-9]{{1,19}})-([0-9]{{1,19}})")
    found = (name.fullmatch(each) for each in names)
    runs = [Run(int(match[1]), int(match[2])) for match in found if match is not None]
    return [run for run in runs if run.first >= first]


def covering(runs: Iterable[_Span], first: int, end: int) -> list[_Span]:
    """The fewest runs, in order, that hold the numbers from `first` on without a gap, at most to `end`."""
    usable = [run for run in runs if run.end <= end]
    chosen: list[_Span] = []
    at = first
    while ahead := [run for run in usable if run.first <= at < run.end]:
        chosen.append(max(ahead, key=lambda run: run.end))
        at = chosen[-1].end
    return chosen


def similar(runs: Sequence[_Span], largest: float = inf) -> Sequence[_Span]:
    """The first `FAN_IN` neighbouring runs whose lengths have the same power of `FAN_IN`; none if there are
    not as many. So a number is joined into larger runs as many times as `largest` has powers.

    largest: greatest length of all of them together
    """
    for start in range(len(runs) - FAN_IN + 1):
        group = runs[start : start + FAN_IN]
        follow = all(run.end == following.first for run, following in pairwise(group))
        are_similar = len({_power(run) for run in group}) == 1
        if follow and are_similar and group[-1].end - group[0].first <= largest:
            return group
    return ()


def _power(run: Span) -> int:
    return ((run.end - run.first).bit_length() - 1) // (FAN_IN.bit_length() - 1)


def gone(name: str) -> Sections:
    """The sections of a part that was in a file, and no longer is in memory. raises: StateError"""
    raise StateError(f"the file of {name} was deleted; the next one is whole")
