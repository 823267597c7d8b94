"""Read drops twice, and find what summaries, pages and scripts show of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from twinsieve.pipeline.basics.amounts import repeats
from twinsieve.pipeline.tools.audit.apart import Reasons
from twinsieve.pipeline.tools.audit.rate import Rate, RateCounter
from twinsieve.pipeline.tools.audit.run_stats import RunStats
from twinsieve.pipeline.tools.audit.totals import Cluster, Clusters, EvenSample, Totals
from twinsieve.pipeline.why.drops import Drop


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much to hold of drops.

    clusters: number of clusters; samples: drops of each; characters: of a text of them
    parts: number of parts of the drop rate
    listed: number of drops to hold beside them, evenly spread; listed_characters: of a text of them
    """

    clusters: int
    samples: int = 1
    characters: int = 1_000
    parts: int = 12
    listed: int = 0
    listed_characters: int = 240


@dataclass(frozen=True, slots=True)
class Findings:
    """What drops show. Texts are cut.

    listed: some drops in their order; reasons: None without a file of rows that were kept apart
    run: what made the drops, as far as it is known
    """

    totals: Totals
    clusters: list[Cluster]
    rate: Rate
    listed: list[Drop]
    reasons: Reasons | None = None
    run: RunStats | None = None

    @property
    def sentence(self) -> str:
        """What the run found, in one sentence."""
        most = self.clusters[0].drops if self.clusters else 0
        return repeats(self.drops, self.run.rows if self.run is not None else None, most)

    @property
    def drops(self) -> int:
        """Number of all drops."""
        return self.totals.drops


def findings_of(read: Callable[[], Iterable[Drop]], sizes: Sizes, reasons: Reasons | None = None) -> Findings:
    """What the drops show.

    read: gives the drops from the first one, the same ones at each call; called twice
    """
    totals = Totals()
    for drop in read():
        totals.add(drop)
    clusters = Clusters(totals, sizes.clusters, samples=sizes.samples, most=sizes.characters)
    rate = RateCounter(totals.extent, sizes.parts)
    listed = EvenSample(totals.drops, sizes.listed, sizes.listed_characters)
    for drop in read():
        for collector in (clusters, rate, listed):
            collector.add(drop)
    return Findings(totals, clusters.found(), rate.rate(), listed.drops, reasons)


def with_leaders(found: Findings, told: Callable[[list[Drop]], list[Drop]]) -> Findings:
    """The findings with the texts of leaders. told: adds them to drops"""
    samples = [drop for cluster in found.clusters for drop in cluster.samples]
    drops = iter(told([*samples, *found.listed]))
    clusters = []
    for cluster in found.clusters:
        with_texts = [next(drops) for _ in cluster.samples]
        clusters.append(replace(cluster, leader=with_texts[0].leader, samples=with_texts))
    return replace(found, clusters=clusters, listed=list(drops))


def findings_json(found: Findings) -> bytes:
    """The counts as JSON, ASCII with a line break at its end. It holds ids and names of inputs, no texts."""
    totals, rate = found.totals, found.rate
    extent = totals.extent
    rows = None
    if extent.rows is not None:
        rows = {
            "first": extent.first,
            "last": extent.last,
            "rows": extent.rows,
            "share": totals.drops / extent.rows,
        }
    said: dict[str, Any] = {
        "drops": totals.drops,
        "stages": dict(totals.stages),
        "flags": dict(totals.flags),
        "near": list(_near(totals)),
        "leaders": len(totals.leaders),
        "without_leader": totals.unled,
        "rows": rows,
        "rate": [asdict(part) | {"rows": part.rows, "share": part.share} for part in rate.rows],
        "times": {
            "span_ms": rate.span_ms,
            "parts": [asdict(part) for part in rate.times],
            "before": rate.before,
            "after": rate.after,
            "untimed": rate.untimed,
        },
        "clusters": [
            {
                "position": cluster.leader.position,
                "id": cluster.leader.id,
                "source": cluster.leader.source,
                "line": cluster.leader.line,
                "drops": cluster.drops,
                "share": cluster.drops / totals.drops,
            }
            for cluster in found.clusters
        ],
        "kept_apart": None if found.reasons is None else dict(found.reasons.counts),
        "run": None if found.run is None else asdict(found.run),
    }
    return json.dumps(said, indent=1).encode() + b"\n"


def _near(totals: Totals) -> Iterator[dict[str, Any]]:
    for (measure, unit), count in sorted(totals.likeness.items()):
        yield {measure: unit / 100 if measure == "similarity" else unit, "drops": count}
