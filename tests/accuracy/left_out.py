"""Limits of `near.differences: full` that are chosen on some labelled pairs and shown on others.

`chosen_on_others`: what a kind of text can expect for which nobody has chosen limits. `chosen_on_half`: what the
limits of a profile are worth on pairs that had no part in their choice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

from tests.accuracy.labels import (
    MORE_PROFILES,
    PROFILES,
    configured,
    drops_alone,
    judged_alone,
    labelled_drops,
    labelled_pairs,
    texts_of,
)
from twinsieve.pipeline.settings.model import PROFILES as SETTINGS
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
SETS = PROFILES | MORE_PROFILES
"""The profile of each set."""
TUNED = [profile for profile in SETTINGS if profile in SETS.values() and "differences" in SETTINGS[profile]]
"""The profiles that have limits."""
TRIED = {name: limit.tried for name, limit in LIMITS.items() if limit.tried}
"""The values of each limit that the combinations are made of."""
_PRECISION = 0.97
_SIMILARITIES = (7_000, 7_500, 8_000, 8_500)


class Choice(NamedTuple):
    """Limits, and from which similarity on two texts are similar."""

    similarity: int
    differences: Differences


class Judged(NamedTuple):
    """Verdicts on labelled pairs that were drawn by similarity, and on drops of whole runs of an earlier version."""

    pairs: list[JudgedVerdict]
    drops: list[JudgedVerdict]


class Half(NamedTuple):
    """Half of a profile's pairs: what the limits chosen on the other half do there, and what the profile does."""

    profile: str
    number: int
    choice: Choice
    chosen: Judged
    shipped: Judged


def chosen_on_others(count: int = CHOICES) -> dict[str, tuple[Choice, Judged]]:
    """For each set the choice that is best on all other sets, and its verdicts on this set.

    Best: of the choices with a precision of .97 on all labels of the other sets, the one with the highest recall.
    count: how many choices are tried; they are drawn with a fixed seed
    """
    tried, judged = _choices(count), _judged(count)
    found = {}
    for name in SETS:
        best = _best([judged[other] for other in SETS if other != name], lambda pair: True)
        found[name] = tried[best], judged[name][best]
    return found


def chosen_on_half(count: int = CHOICES) -> list[Half]:
    """For each half of the pairs of each profile the choice that is best on its other half, judged on this one.

    A pair is in the half that a hash of its earlier message names, so pairs of one leader are not parted.
    """
    tried, judged = _choices(count), _judged(count)
    pairs, drops = judged_alone() | judged_alone(more=True), drops_alone()
    found = []
    for profile in TUNED:
        own = [name for name in SETS if SETS[name] == profile]
        for number in (0, 1):
            best = _best([judged[name] for name in own], lambda pair, half=1 - number: _half(pair) == half)
            chosen = _part([judged[name][best] for name in own], number)
            shipped = _part([Judged(pairs[name], drops.get(name, [])) for name in own], number)
            found.append(Half(profile, number, tried[best], chosen, shipped))
    return found


def _best(judged: Sequence[Sequence[Judged]], counts: Callable[[JudgedPair], bool]) -> int:
    """The number of the best choice. judged: of each set, by choice; counts: which pairs decide"""

    def worth(number: int) -> tuple[float, float]:
        verdicts = [one for some in judged for part in some[number] for one in part if counts(one.pair)]
        return min(precision(verdicts).value, _PRECISION), recall(verdicts).value

    return max(range(len(judged[0])), key=worth)


def _part(judged: Iterable[Judged], number: int) -> Judged:
    """The verdicts on one half of the pairs of several sets."""
    return Judged(
        *(
            [one for some in parts for one in some if _half(one.pair) == number]
            for parts in zip(*judged, strict=True)
        )
    )


def _half(pair: JudgedPair) -> int:
    return blake2b(pair.earlier.encode(), digest_size=1).digest()[0] & 1


@cache
def _choices(count: int) -> list[Choice]:
    drawn = random.Random(1)
    return [
        Choice(
            drawn.choice(_SIMILARITIES),
            Differences(FULL, **{name: drawn.choice(values) for name, values in TRIED.items()}),
        )
        for _ in range(count)
    ]


@cache
def _judged(count: int) -> dict[str, list[Judged]]:
    """The verdicts on the labels of each set, by choice."""
    return {
        name: [
            Judged(*parts)
            for parts in zip(
                *(
                    _verdicts(name, pairs, _choices(count))
                    for pairs in (labelled_pairs(name), labelled_drops(name))
                ),
                strict=True,
            )
        ]
        for name in SETS
    }


def _verdicts(name: str, pairs: Sequence[JudgedPair], choices: Iterable[Choice]) -> list[list[JudgedVerdict]]:
    """The verdicts on pairs of a set under each choice."""
    scheme, sieve = configured(SETS[name])
    batch = batch_of_pairs(pairs, texts_of(name), scheme) if pairs else None
    found = []
    for choice in choices:
        near = replace(
            sieve.near, candidates="scan", similarity=choice.similarity, differences=choice.differences
        )
        found.append(verdicts_of(pairs, batch, replace(sieve, near=near)) if batch else [])
    return found
