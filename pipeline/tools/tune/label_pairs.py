"""Draw pairs of similar messages to label, evenly over similarity and length."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_LEADER, SIMILARITY_SCALE, Batch, Kind, Verdicts

BANDS = tuple((low, low + 500) for low in range(7_000, SIMILARITY_SCALE, 500))
"""Half-open bands of similarity, out of SIMILARITY_SCALE."""

LENGTHS = (16, 32, 64, 140)
"""Edges between the classes of length: the mean of both bodies, in characters."""

MOST_OF_A_CLUSTER = 2
_SEED = 27


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pair that may be drawn.

    later, earlier: positions; earlier is the kept message, which names the cluster
    similarity: out of SIMILARITY_SCALE; length: class of length, from 0
    body: digest of the later message's body
    """

    later: int
    earlier: int
    similarity: int
    length: int
    body: tuple[int, int]

    @property
    def band(self) -> int:
        """Number of its band of similarity."""
        return next(number for number, (low, high) in enumerate(BANDS) if low <= self.similarity < high)


def candidates_of(batches: Sequence[Batch], widest: Verdicts) -> list[Candidate]:
    """Every near drop of the widest point: a message that is similar to a kept one, but not equal.

    widest: the verdicts at the least similarity, under no rule on differences
    """
    positions = np.concatenate([batch.positions for batch in batches])
    lengths = np.concatenate([batch.bodies.body_lengths for batch in batches])
    digests = np.concatenate([batch.fingerprints.digests for batch in batches])
    rows = np.flatnonzero((widest.kinds == Kind.NEAR) & (widest.leaders != NO_LEADER))
    matched, compared = widest.matched[rows].astype(np.int64), widest.compared[rows].astype(np.int64)
    similarities: NDArray[np.int64] = matched * SIMILARITY_SCALE // compared
    leader_rows = np.searchsorted(positions, widest.leaders[rows])
    means = (lengths[rows] + lengths[leader_rows]) // 2
    classes = np.searchsorted(LENGTHS, means, side="right")
    return [
        Candidate(
            int(positions[row]), leader, similarity, length, (int(digests[row, 0]), int(digests[row, 1]))
        )
        for row, leader, similarity, length in zip(
            rows.tolist(), widest.leaders[rows].tolist(), similarities.tolist(), classes.tolist(), strict=True
        )
        if BANDS[0][0] <= similarity < SIMILARITY_SCALE
    ]


def draw(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """At most `most` pairs. The first pairs of a longer draw are those of a shorter one.

    A round takes one pair of each band that still has one, the bands in a random order. Within a band the
    classes of length take turns. Each body stands in one pair; a cluster gives one pair while others have
    some, and at most MOST_OF_A_CLUSTER. The order is random with a fixed seed, so equal samples give equal
    pairs.
    """
    chance = random.Random(_SEED)
    order = list(candidates)
    chance.shuffle(order)
    taken: Counter[int] = Counter()
    bodies: set[tuple[int, int]] = set()
    drawn: list[Candidate] = []
    for limit in range(1, MOST_OF_A_CLUSTER + 1):
        bands = {number: _by_length(order, number) for number in range(len(BANDS))}
        for _ in count():
            round_of = [number for number in bands if bands[number]]
            chance.shuffle(round_of)
            before = len(drawn)
            for number in round_of:
                chosen = _next(bands[number], taken, bodies, limit)
                if chosen is not None and len(drawn) < most:
                    taken[chosen.earlier] += 1
                    bodies.add(chosen.body)
                    drawn.append(chosen)
            if len(drawn) == before or len(drawn) == most:
                break
    return drawn


def _by_length(order: Sequence[Candidate], band: int) -> list[Iterator[Candidate]]:
    classes: dict[int, list[Candidate]] = {}
    for candidate in order:
        if candidate.band == band:
            classes.setdefault(candidate.length, []).append(candidate)
    return [iter(classes[length]) for length in sorted(classes)]


def _next(
    classes: list[Iterator[Candidate]], taken: Counter[int], bodies: set[tuple[int, int]], limit: int
) -> Candidate | None:
    """The next pair that may be drawn, of the class whose turn it is; that class goes to the end."""
    while classes:
        own = classes.pop(0)
        for candidate in own:
            if taken[candidate.earlier] < limit and candidate.body not in bodies:
                classes.append(own)
                return candidate
    return None
