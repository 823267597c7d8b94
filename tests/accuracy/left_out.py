"""Limits of `near.differences: full` that are chosen on all labelled sets but one, and judge that one.

What a kind of text can expect for which nobody has chosen limits.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from tests.accuracy.labels import PROFILES, configured, judged_pairs, texts_of
from twinsieve.pipeline.tools.evaluate.judged import (
    JudgedPair,
    JudgedVerdict,
    batch_of_pairs,
    precision,
    recall,
    verdicts_of,
)
from twinsieve.stages.contract import FULL, LIMITS, Differences

CHOICES = 150
"""How many combinations of limits are tried."""
# Which combinations are drawn depends on the order, and the counts on record were made in this one.
_ORDER = (
    *(
        "replaced_short",
        "replaced",
        "only_short",
        "longest",
        "in_place",
        "name_places",
        "added_short",
        "places",
    ),
    *LIMITS,
)
TRIED = {name: LIMITS[name].tried for name in dict.fromkeys(_ORDER) if LIMITS[name].tried}
"""The values of each limit that the combinations are made of."""
_PRECISION = 0.97
_SIMILARITIES = (7_000, 7_500, 8_000, 8_500)


class Choice(NamedTuple):
    """Limits, and from which similarity on two texts are similar."""

    similarity: int
    differences: Differences


def chosen_on_others(count: int = CHOICES) -> dict[str, tuple[Choice, list[JudgedVerdict]]]:
    """For each set the choice that is best on all other sets, and its verdicts on this set.

    Best: of the choices with a precision of .97 on the pairs of the other sets, the one with the highest recall.
    count: how many choices are tried; they are drawn with a fixed seed
    """
    pairs = {name: [pair for pair in judged_pairs() if pair.set == name] for name in PROFILES}
    tried = _choices(count)
    verdicts = {name: _verdicts(name, some, tried) for name, some in pairs.items()}
    found = {}
    for name in pairs:
        worths = [_worth(verdicts, name, number) for number in range(count)]
        best = max(range(count), key=worths.__getitem__)
        found[name] = tried[best], verdicts[name][best]
    return found


def _choices(count: int) -> list[Choice]:
    every = list(product(_SIMILARITIES, *TRIED.values()))
    drawn = random.Random(1).sample(every, count)
    return [
        Choice(similarity, Differences(FULL, **dict(zip(TRIED, values, strict=True))))
        for similarity, *values in drawn
    ]


def _verdicts(name: str, pairs: Sequence[JudgedPair], choices: Sequence[Choice]) -> list[list[JudgedVerdict]]:
    """The verdicts on the pairs of a set under each choice."""
    scheme, sieve = configured(PROFILES[name])
    batch = batch_of_pairs(pairs, texts_of(name), scheme)
    found = []
    for choice in choices:
        near = replace(
            sieve.near, candidates="scan", similarity=choice.similarity, differences=choice.differences
        )
        found.append(verdicts_of(pairs, batch, replace(sieve, near=near)))
    return found


def _worth(
    verdicts: Mapping[str, Sequence[list[JudgedVerdict]]], left_out: str, number: int
) -> tuple[float, float]:
    """Sorts choices: precision up to what is asked for, then recall."""
    others = [one for name in verdicts if name != left_out for one in verdicts[name][number]]
    return min(precision(others).value, _PRECISION), recall(others).value
