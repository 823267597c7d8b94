"""`Frozen`: the state of a sieve at one moment, divided into what is small and what never changes again.

A saved state consists of three sorts of things:
- *sections*: counters, limits of the Bloom generations and the like. They are small, so they are copied at
  once and written each time;
- *parts*: full Bloom generations and sealed tiers of the trie, and runs of the keys that came into the newest
  generation or the head of the trie (`stages/exact/runs.py`). A part never changes, so it is written once;
- *kept messages*, by their kept indices (numbers in the order of keeping). They never change either, and the
  sieve hands them out as soon as they are kept (`BatchSieve.on_kept`); a restore keeps them again.

A sieve whose kept messages were not handed out from the beginning is saved with another part in place of
them: the memory of the near stage as it is now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from twinsieve.stages.exact.sections import Sections
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.judge.state_bytes import write_state
from twinsieve.stages.window.segments import SealedSegment


@dataclass(frozen=True, slots=True)
class Frozen:
    """The state of a sieve at one moment.

    scheme_id, parameters: as in `write_state`
    sections: the small sections, copies
    parts: by name, functions that return the sections of what never changes. They may be called later and
        from any thread. raises: StateError if the window has passed the part meanwhile
    oldest, kept: a restore needs the kept messages from number `oldest` to number `kept` (exclusive)
    """

    scheme_id: str
    parameters: Mapping[str, Any]
    sections: Sections
    parts: Mapping[str, Callable[[], Sections]]
    oldest: int
    kept: int

    def write(self, stream: BinaryIO) -> None:
        """Write scheme, parameters and small sections. It may be called later, from any thread, and again."""
        write_state(stream, self.scheme_id, self.parameters, self.sections)


class SavedParts(Protocol):
    """Where a restored sieve finds what is not in the small sections."""

    def sections(self, name: str) -> Sections:
        """The sections of a part. raises: StateError if it is missing or damaged"""

    def segments(self) -> Iterable[SealedSegment]:
        """Sealed segments from the beginning of the window on, in their order. Kept messages follow them.

        raises: StateError if one is missing or damaged
        """

    def kept_messages(self) -> Iterable[tuple[int, KeptMessages]]:
        """Runs of kept messages, each with the number of its first message, in their order.

        raises: StateError if one is missing or damaged
        """
