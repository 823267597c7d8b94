"""Read and count the rows of a `--kept-apart` file (docs/FILES.md): what was kept, and the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from twinsieve.pipeline.basics.printable import beginning
from twinsieve.pipeline.why.drops import MOST_OF_NAME, Place, measure_of, place_of, read_objects
from twinsieve.stages.errors import UsageError

_WRITER = "dedup --kept-apart"


@dataclass(frozen=True, slots=True)
class Apart:
    """A message that was kept although an earlier kept one is similar to it.

    reason: the rule that kept it; says, other_says: what the two say at the place that decides, None if no
        single place does
    measure, likeness: name of the measure of likeness and its value, None if the file does not say
    """

    message: Place
    other: Place
    reason: str
    says: str | None
    other_says: str | None
    measure: str | None
    likeness: float | None

    def cut(self, most: int) -> Apart:
        """The pair with only the first characters of both texts, and of ids and sources."""
        texts = self.message.cut(most), self.other.cut(most)
        return Apart(*texts, self.reason, self.says, self.other_says, self.measure, self.likeness)


def read_apart(name: str) -> Iterator[Apart]:
    """All rows of the file, plain or packed, in its order.

    raises: UsageError, which names path and line, for a row of another kind; FileError if the file cannot be
        read
    """
    for place, said in read_objects(name, _WRITER):
        if not isinstance(said, dict) or "apart_from" not in said or not isinstance(said.get("reason"), str):
            raise UsageError(f"{place}: is not a row that was kept apart; give the file that {_WRITER} wrote")
        measure = measure_of(said)
        says, other_says = said.get("says"), said.get("apart_from_says")
        yield Apart(
            place_of(said, "position", "id"),
            place_of(said, "apart_from", "apart_from_id", "apart_from_"),
            beginning(said["reason"], MOST_OF_NAME),
            beginning(says, MOST_OF_NAME) if isinstance(says, str) else None,
            beginning(other_says, MOST_OF_NAME) if isinstance(other_says, str) else None,
            measure,
            None if measure is None else float(said[measure]),
        )


@dataclass(slots=True)
class Reasons:
    """How many rows each reason kept apart, and the first rows of each reason as examples."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Apart]] = field(default_factory=dict)


def reasons_of(rows: Iterable[Apart], examples: int, most: int) -> Reasons:
    """The counts. examples: number of rows to hold of each reason; most: characters to hold of their texts"""
    found = Reasons()
    for row in rows:
        found.counts[row.reason] += 1
        held = found.examples.setdefault(row.reason, [])
        if len(held) < examples:
            held.append(row.cut(most))
    return found
