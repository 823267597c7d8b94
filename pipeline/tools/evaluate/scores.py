"""Precision, recall and F1 of the dropped rows, compared with an ideal leader pass (`truth.ideal_pass`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from twinsieve.pipeline.tools.evaluate.truth import Truth

LENGTH_CLASSES = ((0, 8), (8, 16), (16, 32), (32, 64), (64, 140), (140, 1 << 31))
"""Half-open ranges of body lengths in characters. Bodies below 8 characters are compared only exactly."""


@dataclass(slots=True)
class Counts:
    """Numbers of rows that a run dropped or wrongly kept, compared with the ideal leader pass.

    hits: rows that both drop; wrongly_dropped: rows that only the run drops; wrongly_kept: rows that only the
        ideal pass drops
    """

    hits: int = 0
    wrongly_dropped: int = 0
    wrongly_kept: int = 0

    @property
    def to_drop(self) -> int:
        return self.hits + self.wrongly_kept

    @property
    def precision(self) -> float:
        """Share of the dropped rows that the ideal pass drops too; 1.0 if nothing was dropped."""
        dropped = self.hits + self.wrongly_dropped
        return self.hits / dropped if dropped else 1.0

    @property
    def recall(self) -> float:
        """Share of the rows of the ideal pass that were dropped; 1.0 if it drops none."""
        return self.hits / self.to_drop if self.to_drop else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall: 2 hits / (2 hits + both kinds of errors); 1.0 if all are 0.

        >>> Counts(9, 1, 1).f1
        0.9
        """
        errors = self.wrongly_dropped + self.wrongly_kept
        return 2 * self.hits / (2 * self.hits + errors) if self.hits or errors else 1.0

    def count(self, dropped: bool, to_drop: bool) -> None:
        """Count one row; a row that both keep changes nothing.

        dropped: whether the run drops it; to_drop: whether the ideal pass drops it
        """
        self.hits += dropped and to_drop
        self.wrongly_dropped += dropped and not to_drop
        self.wrongly_kept += to_drop and not dropped

    def __add__(self, other: Counts) -> Counts:
        """The counts of both sets of rows together."""
        return Counts(
            self.hits + other.hits,
            self.wrongly_dropped + other.wrongly_dropped,
            self.wrongly_kept + other.wrongly_kept,
        )


@dataclass(slots=True)
class Scores:
    """How well one run dropped what an ideal leader pass drops.

    every: counts of all rows
    near: counts of the rows without an earlier equal body; exact comparison alone would drop none of these
    near_by_length: the counts of `near` by length class of the row's body, with keys such as "8-16", "140-"
    """

    every: Counts = field(default_factory=Counts)
    near: Counts = field(default_factory=Counts)
    near_by_length: dict[str, Counts] = field(default_factory=dict)


def length_class(length: int) -> str:
    """Name of the length class of a body with this number of characters.

    >>> length_class(8), length_class(15), length_class(140)
    ('8-16', '8-16', '140-')
    """
    low, high = next((low, high) for low, high in LENGTH_CLASSES if length < high)
    return f"{low}-" if high == LENGTH_CLASSES[-1][1] else f"{low}-{high}"


def score(truth: Truth, dropped: Sequence[bool], lengths: Sequence[int]) -> Scores:
    """The scores of a run. For each row the run's decision, drop or keep, is compared with the ideal pass.

    A row is a hit if both drop it, even if they name different leaders. Otherwise one borderline pair, after
    which the two have different leaders, would count as two errors.
    The counts `near` are over the rows for which `truth.seen_before` is False. They include every drop among
    these rows, even a drop by the exact stage under a coarser body rule.

    dropped, lengths: one for each row of `truth`; lengths are the lengths of the run's own bodies
    """
    scores = Scores(near_by_length={length_class(low): Counts() for low, _ in LENGTH_CLASSES})
    for leader, seen, drop, length in zip(truth.leaders, truth.seen_before, dropped, lengths, strict=True):
        scores.every.count(drop, leader >= 0)
        if not seen:
            scores.near.count(drop, leader >= 0)
            scores.near_by_length[length_class(length)].count(drop, leader >= 0)
    return scores
