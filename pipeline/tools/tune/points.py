"""A sweep as JSON, for scripts and plots: the figures of the report."""

from __future__ import annotations

from typing import Any

import orjson

from twinsieve.pipeline.tools.evaluate.judged import Share
from twinsieve.pipeline.tools.tune.page import Report
from twinsieve.pipeline.tools.tune.sweep import Point
from twinsieve.stages.contract import SIMILARITY_SCALE


def points_json(report: Report) -> bytes:
    """One object: rows and messages of the sample; `points`, each with the keys that it sets; `in_force`,
    what the user's settings do; `pairs` to label; with labels `advice`, what is recommended."""
    own = report.in_force
    content: dict[str, Any] = {
        "rows": report.sample.rows,
        "messages": len(report.sample),
        "points": [_point(point) for point in report.points],
        "in_force": {
            "similarity": own.settings.near.similarity / SIMILARITY_SCALE,
            "exact": own.exact,
            "near": own.near,
            "drop_share": own.drop_share,
            "kept_apart": own.kept_apart,
        },
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


def _point(point: Point) -> dict[str, Any]:
    said: dict[str, Any] = {
        "curve": point.curve.name,
        "set": point.curve.keys | {"near.similarity": point.similarity / SIMILARITY_SCALE},
        "exact": point.exact,
        "near": point.near,
        "drop_share": point.drop_share,
        "kept_apart": point.kept_apart,
    }
    if point.judged is not None:
        said |= {"precision": _share(point.judged.precision), "recall": _share(point.judged.recall)}
    return said


def _share(share: Share) -> dict[str, Any]:
    """The share with both ends of its 95 % interval."""
    return {"value": share.value, "hits": share.hits, "of": share.of, "interval": share.interval}
