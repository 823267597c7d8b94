"""Precision, recall and F1 of dropped rows against an ideal leader pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from twinsieve.pipeline.evaluate.truth import Truth

LENGTH_CLASSES = ((0, 8), (8, 16), (16, 32), (32, 64), (64, 140), (140, 1 << 31))
"""Half-open ranges of body characters; bodies below 8 are compared exactly only."""


@dataclass(slots=True)
class Counts:
    """Dropped rows counted against what was to be dropped.

    hits: dropped, and rightly; wrongly_dropped, wrongly_kept: the rest
    """

    hits: int = 0
    wrongly_dropped: int = 0
    wrongly_kept: int = 0

    @property
    def to_drop(self) -> int:
        return self.hits + self.wrongly_kept

    @property
    def precision(self) -> float:
        """Share of the dropped rows that were to be dropped; 1.0 if nothing was dropped."""
        dropped = self.hits + self.wrongly_dropped
        return self.hits / dropped if dropped else 1.0

    @property
    def recall(self) -> float:
        """Share of the rows to be dropped that were; 1.0 if there are none."""
        return self.hits / self.to_drop if self.to_drop else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall: 2 hits / (2 hits + both kinds of errors); 1.0 for no rows.

        >>> Counts(9, 1, 1).f1
        0.9
        """
        errors = self.wrongly_dropped + self.wrongly_kept
        return 2 * self.hits / (2 * self.hits + errors) if self.hits or errors else 1.0

    def count(self, dropped: bool, to_drop: bool) -> None:
        """Count one row; a row rightly kept changes nothing."""
        self.hits += dropped and to_drop
        self.wrongly_dropped += dropped and not to_drop
        self.wrongly_kept += to_drop and not dropped

    def __add__(self, other: Counts) -> Counts:
        """Pooled counts, as if both sets of rows were one."""
        return Counts(
            self.hits + other.hits,
            self.wrongly_dropped + other.wrongly_dropped,
            self.wrongly_kept + other.wrongly_kept,
        )


@dataclass(slots=True)
class Scores:
    """How well one run dropped what an ideal leader pass drops.

    every: all rows
    near: rows without an earlier equal body; plain exact removal drops none of these
    near_by_length: the same by length class of the later body, keyed "8-16", "140-"
    """

    every: Counts = field(default_factory=Counts)
    near: Counts = field(default_factory=Counts)
    near_by_length: dict[str, Counts] = field(default_factory=dict)


def length_class(length: int) -> str:
    """Name of the class that a body of this many characters falls into.

    >>> length_class(8), length_class(15), length_class(140)
    ('8-16', '8-16', '140-')
    """
    low, high = next((low, high) for low, high in LENGTH_CLASSES if length < high)
    return f"{low}-" if high == LENGTH_CLASSES[-1][1] else f"{low}-{high}"


def score(truth: Truth, dropped: Sequence[bool], lengths: Sequence[int]) -> Scores:
    """Scores of a run, row by row: dropped or not against to be dropped or not.

    A row counts as right when both agree that it goes, whichever leader either names: two leader sets that
    differ by a border case would otherwise be punished twice.
    near: the rows for which `truth.seen_before` is False, and those alone; precision there is over every
    drop the run made among these rows, so a row dropped as exact under a coarser body rule counts too.
    dropped, lengths: one for each row of `truth`; lengths are those of the run's own bodies
    """
    scores = Scores(near_by_length={length_class(low): Counts() for low, _ in LENGTH_CLASSES})
    for leader, seen, drop, length in zip(truth.leaders, truth.seen_before, dropped, lengths, strict=True):
        scores.every.count(drop, leader >= 0)
        if not seen:
            scores.near.count(drop, leader >= 0)
            scores.near_by_length[length_class(length)].count(drop, leader >= 0)
    return scores
