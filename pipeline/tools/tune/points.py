"""A sweep as JSON, for scripts and plots: the figures of the report."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import orjson

from twinsieve.pipeline.tools.evaluate.judged import Share
from twinsieve.pipeline.tools.tune.in_force import InForce
from twinsieve.pipeline.tools.tune.page import Report
from twinsieve.pipeline.tools.tune.sweep import Point
from twinsieve.stages.contract import SIMILARITY_SCALE


def points_json(report: Report) -> bytes:
    """One object: rows and messages of the sample; `points`, each with the keys that it sets; `in_force`,
    what the user's settings do; `costs` of each curve; `pairs` to label; with labels `advice`, what is
    recommended."""
    content: dict[str, Any] = {
        "rows": report.sample.rows,
        "messages": len(report.sample),
        "points": [_point(point) for point in report.points],
        "in_force": _in_force(report.in_force),
        "costs": [
            {
                "curve": cost.curve.name,
                "set": cost.curve.keys,
                "read_us": cost.read_us,
                "judge_us": cost.judge_us,
                "kept_message_bytes": cost.kept_bytes,
                "sample_bytes": cost.sample_bytes,
                "full_bytes": cost.full_bytes,
            }
            for cost in report.costs
        ],
        "pairs": [
            {
                "later_id": pair.later,
                "earlier_id": pair.earlier,
                "similarity": pair.similarity / SIMILARITY_SCALE,
                "label": pair.label or None,
            }
            for pair in report.pairs
        ],
    }
    advice = report.advice
    if advice is not None:
        content["advice"] = {"yaml": advice.yaml, "reason": advice.reason, "lines": advice.lines}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _in_force(own: InForce) -> dict[str, Any]:
    return {
        "similarity": own.settings.near.similarity / SIMILARITY_SCALE,
        "exact": own.exact,
        "near": own.near,
        "drop_share": own.drop_share,
        "kept_apart": own.kept_apart,
        "time_span_ms": own.time_span_ms,
        "clusters": {
            "sizes": [
                {"from": first, "clusters": count, "dropped": dropped}
                for first, count, dropped in own.clusters.sizes
            ],
            "biggest": [
                {"position": position, "dropped": dropped} for position, dropped in own.clusters.biggest
            ],
            "leaderless": own.clusters.leaderless,
        },
        "similarities": asdict(own.histogram)
        | {"edges": [edge / SIMILARITY_SCALE for edge in own.histogram.edges]},
        "windows": [
            {
                "name": window.name,
                "set": window.keys,
                "exact": window.exact,
                "near": window.near,
                "caught": own.caught(window),
            }
            for window in own.windows
        ],
    }


def _point(point: Point) -> dict[str, Any]:
    said: dict[str, Any] = {
        "curve": point.curve.name,
        "set": point.curve.keys | {"near.similarity": point.similarity / SIMILARITY_SCALE},
        "exact": point.exact,
        "near": point.near,
        "drop_share": point.drop_share,
        "kept_apart": point.kept_apart,
        "read_us": 1e6 * point.read_s / point.messages,
        "judge_us": 1e6 * point.judge_s / point.messages,
        "sample_bytes": point.bytes_used,
    }
    if point.judged is not None:
        said |= {"precision": _share(point.judged.precision), "recall": _share(point.judged.recall)}
    if point.scored is not None:
        said["true_pairs"] = {
            "precision": _share(point.scored.precision),
            "recall": _share(point.scored.recall),
            "f1": point.scored.f1,
        }
    return said


def _share(share: Share) -> dict[str, Any]:
    """The share with both ends of its 95 % interval."""
    return {"value": share.value, "hits": share.hits, "of": share.of, "interval": share.interval}
