"""What drops show, as JSON for scripts, and in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from twinsieve.pipeline.basics.shown_amounts import repeats
from twinsieve.pipeline.tools.audit.apart import Reasons
from twinsieve.pipeline.tools.audit.run_stats import RunStats
from twinsieve.pipeline.tools.audit.store import Cluster, DropTable
from twinsieve.pipeline.why.drops import Drop

PARTS = 60
"""The largest number of parts of the drop rate, in JSON and on a page."""
_MOST_CHARACTERS = 1_000

Tell = Callable[[list[Drop]], list[Drop]]
"""Adds the texts of leaders to drops."""


def sentence(drops: DropTable, run: RunStats | None) -> str:
    """What the run found, in one sentence."""
    most = max((size for size, _ in drops.sizes), default=0)
    return repeats(drops.drops, run.rows if run is not None else None, most)


def clusters_of(drops: DropTable, most: int, samples: int, tell: Tell) -> list[Cluster]:
    """The clusters with the most drops, with the texts of their leaders."""
    clusters = drops.clusters(most, samples, _MOST_CHARACTERS)
    told = iter(tell([drop for cluster in clusters for drop in cluster.samples]))
    made = []
    for cluster in clusters:
        samples_ = [next(told) for _ in cluster.samples]
        made.append(replace(cluster, leader=samples_[0].leader or cluster.leader, samples=samples_))
    return made


def findings_json(drops: DropTable, top: int, reasons: Reasons | None, run: RunStats | None) -> bytes:
    """The counts as JSON, ASCII with a line break at its end. It holds ids and names of inputs, no texts."""
    times = drops.times(PARTS)
    rows = None
    if drops.rows is not None:
        shares = {"rows": drops.rows, "share": drops.drops / drops.rows}
        rows = {"first": drops.first, "last": drops.last, **shares}
    said: dict[str, Any] = {
        "drops": drops.drops,
        "stages": drops.stages,
        "flags": drops.flags,
        "near": [
            {measure: unit / 100 if measure == "similarity" else unit, "drops": count}
            for measure, unit, count in drops.near
        ],
        "leaders": drops.leaders,
        "without_leader": drops.unled,
        "rows": rows,
        "rate": [asdict(part) for part in drops.row_parts(PARTS)],
        "times": asdict(times)
        | {"parts": [{"start_ms": start, "drops": count} for start, count in times.parts]},
        "clusters": [
            {
                "position": cluster.leader.position,
                "id": cluster.leader.id,
                "source": cluster.leader.source,
                "line": cluster.leader.line,
                "element": cluster.leader.element,
                "drops": cluster.drops,
                "share": cluster.drops / drops.drops,
            }
            for cluster in drops.clusters(top, 1, 0)
        ],
        "kept_apart": None if reasons is None else dict(reasons.counts),
        "run": None if run is None else asdict(run),
    }
    return json.dumps(said, indent=1).encode() + b"\n"
