"""Saved states of a sieve as files that are written once: kept messages, and what never changes.

A saved state is a small *manifest*, which the owner writes (an index, a run of `dedup`, `Sieve.save`), and
the files that it names. A file never changes after it has its name; a later state names it again. So a save
costs what is new.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from twinsieve.stages.errors import StateError


class UnreadableError(StateError):
    """A saved state is damaged, or its store cannot read it: an older state or the log has to replace it."""


class Moved(NamedTuple):
    """Progress of a state that is being read or written: bytes done, and size in bytes (0 while unknown)."""

    doing: Literal["reading", "writing"]
    done: int
    size: int


Watch = Callable[[Moved], None]
"""Called whenever bytes of a state were read or written, in the thread that does so."""


def no_watch(moved: Moved) -> None:
    """A watch that does nothing."""
