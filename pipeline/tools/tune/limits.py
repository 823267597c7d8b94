"""Choose limits of `near.limits` by labels, around a point that was chosen before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from twinsieve.pipeline.settings.stage_config import scheme_config
from twinsieve.pipeline.tools.evaluate.judged import (
    JudgedPair,
    batch_of_pairs,
    precision,
    recall,
    verdicts_of,
)
from twinsieve.pipeline.tools.tune.sweep import Judged, Point, config_at
from twinsieve.stages.contract import FULL, LIMITS, Batch, Differences
from twinsieve.stages.judge.scheme import SchemeConfig

LEAST_GAIN = 0.01
"""Least gain of the measure for which a limit changes. Smaller gains do not last on other pairs of a set."""


@dataclass(slots=True)
class LabelledPairs:
    """Judges labelled pairs under a point with other limits. texts: the text of each name"""

    pairs: Sequence[JudgedPair]
    texts: Mapping[str, str]
    _batches: dict[SchemeConfig, Batch] = field(default_factory=dict)

    def judged(self, point: Point, limits: Mapping[str, int]) -> Judged:
        """Precision and recall. limits: those that differ from the point's own"""
        scheme = scheme_config(point.curve.settings)
        if scheme not in self._batches:
            self._batches[scheme] = batch_of_pairs(self.pairs, self.texts, scheme)
        config = config_at(point.curve, point.similarity)
        differences = config.near.differences._replace(**limits)
        verdicts = verdicts_of(
            self.pairs,
            self._batches[scheme],
            replace(config, near=replace(config.near, differences=differences)),
        )
        return Judged(precision(verdicts), recall(verdicts))


def better_limits(
    point: Point, labelled: LabelledPairs, worth: Callable[[Judged], float]
) -> tuple[dict[str, int], Judged]:
    """Limits that are worth more than those of the point, and what it does with them; none if no others
    are worth LEAST_GAIN more.

    One limit is changed at a time, the one that brings most, until no change brings enough.
    """
    own = config_at(point.curve, point.similarity).near.differences
    chosen: dict[str, int] = {}
    best = labelled.judged(point, chosen)
    while own.level == FULL:
        trials = [(limits, labelled.judged(point, limits)) for limits in _changes(own, chosen)]
        limits, judged = max(trials, key=lambda trial: worth(trial[1]))
        if worth(judged) < worth(best) + LEAST_GAIN:
            break
        chosen, best = limits, judged
    return chosen, best


def _changes(own: Differences, chosen: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Each limit with each other value, on top of what is chosen."""
    for name, limit in LIMITS.items():
        for value in limit.tried:
            if value != chosen.get(name, getattr(own, name)):
                yield {**chosen, name: value}
