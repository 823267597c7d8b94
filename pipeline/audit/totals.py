"""Count what a run dropped: by stage, by similarity, and by the kept message that leads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from twinsieve.pipeline.audit.drops import Drop, Place


@dataclass(slots=True)
class Totals:
    """Counts over the rows of a `--duplicates` file.

    stages, flags: number of drops by stage and by flag
    bands: number of near drops by twentieths of the similarity, rounded down: 17 is .85 to .90
    sizes: number of drops by position of the leader; memory is about 100 bytes a leader
    unled: drops whose earlier copy only the Bloom filter knows
    """

    stages: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    bands: Counter[int] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    unled: int = 0

    @property
    def drops(self) -> int:
        """Number of all drops."""
        return self.stages.total()

    def add(self, drop: Drop) -> None:
        """Count one drop."""
        self.stages[drop.stage] += 1
        self.flags.update(drop.flags)
        if drop.stage == "near" and drop.measure == "similarity":
            self.bands[int(drop.likeness * 20)] += 1
        if drop.leader is None or drop.leader.position is None:
            self.unled += 1
        else:
            self.sizes[drop.leader.position] += 1


@dataclass(frozen=True, slots=True)
class Cluster:
    """A kept message and how many messages were dropped for it. sample: one of them"""

    leader: Place
    drops: int
    sample: Drop


def biggest(drops: Iterable[Drop], totals: Totals, count: int) -> list[Cluster]:
    """The clusters with the most drops, the biggest first, of equally big ones the older leader first.

    drops: the rows again, from the first one; totals: their counts. Only texts of these clusters are held.
    The sample is the near drop that is least alike to the leader, else the first drop
    """
    chosen = sorted(totals.sizes, key=lambda position: (-totals.sizes[position], position))[:count]
    samples: dict[int, Drop] = {}
    wanted = set(chosen)
    for drop in drops:
        position = drop.leader.position if drop.leader is not None else None
        if position in wanted and position is not None:
            before = samples.get(position)
            if before is None or (drop.measure == "similarity" and drop.likeness < before.likeness):
                samples[position] = drop
    return [
        Cluster(leader, totals.sizes[position], samples[position])
        for position in chosen
        if position in samples and (leader := samples[position].leader) is not None
    ]
