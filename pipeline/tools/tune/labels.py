"""Labels to tune by: each pair counts once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from twinsieve.pipeline.tools.evaluate.judged import JudgedPair

_UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Labels:
    """Distinct labelled pairs.

    notes: what was left out, a sentence each
    """

    pairs: list[JudgedPair]
    notes: list[str]

    def count(self, *labels: str) -> int:
        """Number of pairs with one of these labels."""
        found = Counter(pair.label for pair in self.pairs)
        return sum(found[label] for label in labels)


def distinct_labels(pairs: Sequence[JudgedPair]) -> Labels:
    """The pairs with their labels, each pair once, in the order of their first lines.

    Two lines name the same pair in either order of its messages. A pair that is labelled `same` and
    `different` counts as `unsure`; an `unsure` beside another label does not count.
    """
    first: dict[frozenset[str], JudgedPair] = {}
    labels: dict[frozenset[str], set[str]] = {}
    for pair in pairs:
        ids = frozenset((pair.later, pair.earlier))
        first.setdefault(ids, pair)
        labels.setdefault(ids, set()).add(pair.label)
    kept, contradictory = [], 0
    for ids, pair in first.items():
        sure = labels[ids] - {_UNSURE}
        contradictory += len(sure) > 1
        label = sure.pop() if len(sure) == 1 else _UNSURE
        kept.append(JudgedPair(pair.set, pair.later, pair.earlier, label))
    notes = []
    if len(kept) < len(pairs):
        notes.append(
            f"{len(pairs) - len(kept):,} of {len(pairs):,} labels repeat a pair; each pair counts once"
        )
    if contradictory:
        notes.append(f"pairs labelled same and different count as unsure: {contradictory:,}")
    return Labels(kept, notes)
