"""What each curve costs: CPU time a message, and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from twinsieve.pipeline.tools.tune.sweep import Curve, Point, config_at
from twinsieve.stages.judge.batch_sieve import worst_case_bytes

_OF_EXACT = ("bloom", "trie")
_MEASURED = 5
"""Points whose times count: one alone may have been disturbed by other work of the machine."""


@dataclass(frozen=True, slots=True)
class CurveCost:
    """The costs of a curve at one similarity.

    read_us, judge_us: CPU time of one thread a message, µs: to make its fingerprints, and to judge it
    kept_bytes: memory of a kept message while it is in the windows, at most
    full_bytes: memory when both windows are full, at most (`lint` shows the same)
    sample_bytes: memory of the sieve after the sample
    """

    curve: Curve
    read_us: float
    judge_us: float
    kept_bytes: int
    full_bytes: int
    sample_bytes: int


def costs_of(points: Sequence[Point], similarity: int) -> list[CurveCost]:
    """The costs of each curve at the similarities that are nearest to this one; of the times the median."""
    curves: dict[str, list[Point]] = {}
    for point in points:
        curves.setdefault(point.curve.name, []).append(point)
    return [
        _cost(sorted(line, key=lambda point: abs(point.similarity - similarity))[:_MEASURED])
        for line in curves.values()
    ]


def _cost(nearest: Sequence[Point]) -> CurveCost:
    point = nearest[0]
    config = config_at(point.curve, point.similarity, "")
    parts = worst_case_bytes(config)
    exact = sum(parts[name] for name in _OF_EXACT if name in parts)
    full = sum(parts.values())
    kept = (full - exact) / config.near.window.messages + exact / config.exact.window.messages
    return CurveCost(
        point.curve,
        1e6 * point.read_s / point.messages,
        1e6 * median(each.judge_s for each in nearest) / point.messages,
        round(kept),
        full,
        point.bytes_used,
    )
