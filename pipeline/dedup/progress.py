"""The progress of the runs on one state, and that of a run without a state."""

from __future__ import annotations

from dataclasses import dataclass, field

from twinsieve.pipeline.settings.model import Settings

_KEPT_DIGESTS = 10_000
"""Number of inputs that a state remembers; the oldest ones are forgotten first."""


@dataclass(slots=True)
class Progress:
    """The progress of all runs on one state, from which a later run continues.

    fields: the fields that are keys and scopes, by settings key. A run with other fields is refused, because
        old and new keys would never be equal, or messages of different scopes would be compared
    rows: number of rows read by all runs; the next row has position rows + 1
    leaders: marks of the leader book, empty if there is no book
    inputs: content digests of the inputs that were read to their end
    waiting: `Jumps.waiting`; states of version 5 have none
    """

    fields: dict[str, list[str]]
    rows: int = 0
    leaders: list[list[int]] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    waiting: list[list[int]] = field(default_factory=list)

    def check(self) -> None:
        """Check values that come from a file. raises: ValueError or TypeError for other types or numbers"""
        names = [name for fields in self.fields.values() for name in fields]
        marks = [number for mark in self.leaders for number in mark]
        texts, numbers = [*self.fields, *names, *self.inputs], [self.rows, *marks]
        pairs = [number for pair in self.waiting for number in pair]
        if {type(text) for text in texts} - {str} or {type(number) for number in [*numbers, *pairs]} != {int}:
            raise ValueError("its progress has other types")
        if min(numbers) < 0 or max(numbers) >= 1 << 62 or any(len(mark) != 3 for mark in self.leaders):
            raise ValueError("its progress has numbers that none has")
        if any(len(pair) != 2 or abs(pair[1]) >= 1 << 62 for pair in self.waiting):
            raise ValueError("its progress has times that none has")
        before = [0, *(position for position, _ in self.waiting)]
        after = [*before[1:], self.rows + 1]
        if any(earlier >= later for earlier, later in zip(before, after, strict=True)):
            raise ValueError("its progress has rows that none has")

    def remember(self, digests: list[str | None]) -> None:
        """Add the digests of inputs that were read to their end; None, for no digest, is skipped."""
        inputs = dict.fromkeys([*self.inputs, *filter(None, digests)])
        self.inputs = list(inputs)[-_KEPT_DIGESTS:]


def first_progress(settings: Settings) -> Progress:
    """The progress before the first run."""
    return Progress({"exact.fields": list(settings.exact.fields), "scope": list(settings.scope)})
