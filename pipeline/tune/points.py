"""The points of a sweep as JSON, for scripts and plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from twinsieve.pipeline.evaluate.judged import Share
from twinsieve.pipeline.tune.advice import Advice
from twinsieve.pipeline.tune.sample import Sample
from twinsieve.pipeline.tune.sweep import Point
from twinsieve.stages.contract import SIMILARITY_SCALE


def points_json(points: Sequence[Point], sample: Sample, advice: Advice | None = None) -> bytes:
    """One object: rows and messages of the sample, a list of points, each with the keys that it sets, and the
    recommendation if there are labels."""
    report: dict[str, Any] = {"rows": sample.rows, "messages": len(sample)}
    report["points"] = [_point(point) for point in points]
    if advice is not None:
        report["advice"] = {"yaml": advice.yaml, "reason": advice.reason, "lines": advice.lines}
    return orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


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
