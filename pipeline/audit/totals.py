"""Count what a run dropped: by stage, by likeness, and by the kept message that leads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import mmh3

from twinsieve.pipeline.audit.drops import Drop, Place
from twinsieve.pipeline.audit.leaders import LeaderCounts
from twinsieve.pipeline.audit.rate import Extent
from twinsieve.pipeline.messages.columns import LIKENESS_WORDS

HUNDREDTHS = 100
_TEN_THOUSANDTHS = 10_000
_MOST_UNITS = 200
"""Distances and hashes in common from here on are counted together."""


@dataclass(slots=True)
class Totals:
    """Counts over dropped rows.

    stages, flags: number of drops by stage and by flag
    likeness: number of near drops by measure and value: a similarity in hundredths, rounded down, a distance
        in bits, or a number of hashes in common
    leaders: number of drops by leader
    unled: drops whose earlier copy only the Bloom filter knows
    extent: rows and times that the drops cover
    """

    stages: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    likeness: Counter[tuple[str, int]] = field(default_factory=Counter)
    leaders: LeaderCounts = field(default_factory=LeaderCounts)
    unled: int = 0
    extent: Extent = field(default_factory=Extent)

    @property
    def drops(self) -> int:
        """Number of all drops."""
        return self.stages.total()

    def add(self, drop: Drop) -> None:
        """Count one drop."""
        self.stages[drop.stage] += 1
        self.flags.update(drop.flags)
        if drop.stage == "near":
            self.likeness[drop.measure, _unit(drop)] += 1
        key = leader_key(drop.leader)
        if key is None:
            self.unled += 1
        else:
            self.leaders.add(key)
        self.extent.add(drop)

    def bands(self) -> list[tuple[str, int]]:
        """Near drops by likeness in words: a similarity in twentieths, rounded down, others by value."""
        bands: Counter[tuple[str, int]] = Counter()
        for (measure, unit), count in self.likeness.items():
            bands[measure, unit // 5 * 5 if measure == "similarity" else unit] += count
        return [(_in_words(measure, unit), count) for (measure, unit), count in sorted(bands.items())]


def totals_of(drops: Iterable[Drop]) -> Totals:
    """The counts of these drops. Memory is that of `LeaderCounts`."""
    totals = Totals()
    for drop in drops:
        totals.add(drop)
    return totals


def leader_key(leader: Place | None) -> int | None:
    """A 64-bit number of the leader: its position, or a hash of where it stands; None if it is not known."""
    if leader is None:
        return None
    if leader.position is not None:
        return leader.position
    if leader.source is None or leader.line is None:
        return None
    return -1 - (mmh3.hash64(f"{leader.source}:{leader.line}", signed=False)[0] >> 1)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A kept message and how many messages were dropped for it.

    samples: some of them with different texts, the least similar to the leader first
    """

    leader: Place
    drops: int
    samples: list[Drop]


class Clusters:
    """Collects samples of the clusters with the most drops, from the drops that were counted before.

    count: number of clusters; samples: drops to hold of each; most: characters to hold of a text
    """

    def __init__(self, totals: Totals, count: int, *, samples: int, most: int) -> None:
        self._sizes = dict(totals.leaders.most(count))
        self._samples: dict[int, list[Drop]] = {key: [] for key in self._sizes}
        self._wanted = samples
        self._most = most

    def add(self, drop: Drop) -> None:
        """Hold the drop if it is of such a cluster and less similar to its leader than those held."""
        key = leader_key(drop.leader)
        held = self._samples.get(key) if key is not None else None
        if held is None or (len(held) == self._wanted and drop.closeness >= held[-1].closeness):
            return
        drop = drop.cut(self._most)
        if any(other.message.text == drop.message.text for other in held):
            return
        held.append(drop)
        held.sort(key=lambda other: other.closeness)
        del held[self._wanted :]

    def found(self) -> list[Cluster]:
        """The clusters, the biggest first, of equally big ones the older leader first."""
        return [
            Cluster(held[0].leader, drops, held)
            for key, drops in self._sizes.items()
            if (held := self._samples[key]) and held[0].leader is not None
        ]


class EvenSample:
    """Takes every n-th drop, so that `wanted` of `total` drops are held, or all if there are no more.

    most: characters to hold of a text
    """

    def __init__(self, total: int, wanted: int, most: int) -> None:
        self._total = total
        self._wanted = min(wanted, total)
        self._most = most
        self._seen = 0
        self.drops: list[Drop] = []

    def add(self, drop: Drop) -> None:
        """Hold the drop if its turn has come."""
        if len(self.drops) < self._wanted and self._seen * self._wanted // self._total == len(self.drops):
            self.drops.append(drop.cut(self._most))
        self._seen += 1


def _unit(drop: Drop) -> int:
    if drop.measure == "similarity":
        # A similarity is a multiple of 1/10,000; its product with 100 may lie just below a whole number.
        return min(round(drop.likeness * _TEN_THOUSANDTHS) // (_TEN_THOUSANDTHS // HUNDREDTHS), HUNDREDTHS)
    return min(int(drop.likeness), _MOST_UNITS)


def _in_words(measure: str, unit: int) -> str:
    if measure == "similarity":
        return f"near, from {unit / HUNDREDTHS:g}"
    return f"near, {unit}{' or more' if unit == _MOST_UNITS else ''} {LIKENESS_WORDS[measure]}"
