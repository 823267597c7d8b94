"""Recommend a profile and a similarity by labelled pairs, or say why not.

Few labels cannot prove a precision of .96: if all of 40 dropped pairs are `same`, the 90 % interval still
begins at .94. So settings are compared with each other, by the F measure of the lower end of that interval
and of recall: one wrong drop more must bring many right ones, and the fewer labels there are, the more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from twinsieve.pipeline.settings.model import LOW_FLOOR_LAYOUT, PROFILES, NearSettings, Settings
from twinsieve.pipeline.settings.proposal import misfit_line, profile_of
from twinsieve.pipeline.settings.schema import declared
from twinsieve.pipeline.settings.show import value_text
from twinsieve.pipeline.settings.stage_config import scheme_config
from twinsieve.pipeline.tools.evaluate.judged import (
    JudgedPair,
    Share,
    batch_of_pairs,
    precision,
    recall,
    verdicts_of,
    wilson,
)
from twinsieve.pipeline.tools.tune.labels import Labels
from twinsieve.pipeline.tools.tune.sweep import Judged, Point, config_at, similarity_text
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


LEAST_LABELS = 30
"""With fewer pairs labelled `same` or `different` nothing is recommended."""
LEVEL = 0.9
"""Of the intervals."""
LIMITS_FROM = 200
"""With fewer labels the limits of the profile stay."""
NARROW = (0.05, 0.02)
"""Half the widths of an interval of precision that a user may want."""
_BETA = 1 / 3
"""Of the F measure: how much recall counts beside precision."""
_SLIP = 0.03
"""Share of the pairs labelled `different` that a profile drops, as supposed before any label is seen. It is
that of all judged sets (14 of 448, docs/BENCHMARKS.md), and .02 to .04 without any one of them."""
_WEIGHT = 5
"""Number of labels for which the supposition counts. Where nearly all pairs are the same, one wrong drop
would decide alone without it."""
_DEFAULTS = NearSettings()


@dataclass(frozen=True, slots=True)
class Rule:
    """How settings are compared.

    beta: of the F measure, how much recall counts beside precision
    slip: share of the pairs labelled `different` that a profile drops, as supposed before any label is seen.
        It is that of all judged sets (14 of 448), and .02 to .04 without any one of them
    weight: number of labels for which the supposition counts. Where nearly all pairs are the same, one wrong
        drop would decide alone without it
    """

    beta: float = 1 / 3
    slip: float = 0.03
    weight: int = 5


RULE = Rule()


@dataclass(frozen=True, slots=True)
class Advice:
    """What `tune --judged` recommends.

    yaml: settings to copy; None: nothing is recommended
    reason: why these, or why none, in one sentence
    lines: what else a reader should know, a sentence each
    point: the point of these settings, without their limits
    """

    yaml: str | None
    reason: str
    lines: list[str]
    point: Point | None = None


def advise(
    points: Sequence[Point],
    labels: Labels,
    texts: Mapping[str, str],
    settings: Settings,
    *,
    own: bool = False,
    sampled: Sequence[str] = (),
) -> Advice:
    """The settings that the labels speak for.

    points: judged by these labels; only those of a profile are compared
    texts: the text of each name in the labels
    settings: those in force; own: whether the user wrote some of them
    sampled: texts of the input, whose kind speaks for a profile too
    """
    missing = _missing(labels)
    if missing is not None:
        return Advice(None, f"no recommendation: {missing}", labels.notes)
    different = labels.count("different")
    kind = profile_of(sampled)
    chosen = best_point(points, different, settings, kind)
    if chosen is None or chosen.judged is None:
        why = "no profile drops a pair labelled same at any similarity"
        return Advice(None, f"no recommendation: {why}", labels.notes)
    judged, limits = chosen.judged, dict[str, int]()
    if len(labels.pairs) >= LIMITS_FROM:
        found = LabelledPairs(labels.pairs, texts)
        limits, judged = better_limits(chosen, found, lambda trial: _worth(trial, different))
    precision, recall = judged.precision, judged.recall
    if precision.value < 0.5:
        why = "even the best settings drop more pairs labelled different than pairs labelled same"
        return Advice(None, f"no recommendation: {why}", labels.notes)
    reason = (
        f"profile {chosen.curve.profile} from similarity {similarity_text(chosen.similarity)} on balances "
        f"recall and the lower end of the {LEVEL:.0%} interval of precision best"
    )
    lines = [
        f"precision {_shown(precision)}: {precision.hits} of {precision.of} dropped pairs are labelled same",
        f"recall {_shown(recall)}: {recall.hits} of {recall.of} pairs labelled same are dropped",
        *([] if limits else _settings_in_force(points, settings, chosen)),
        *_about_kind(points, chosen, kind, sampled),
        *_about_limits(limits, chosen.judged, len(labels.pairs)),
        _more_labels(precision, len(labels.pairs)),
    ]
    if own:
        lines.append("these keys replace yours; your other settings were in force here and stay as they are")
    return Advice(_yaml(chosen, limits), reason, lines + labels.notes, chosen)


def best_point(
    points: Sequence[Point],
    different: int,
    settings: Settings,
    kind: str | None = None,
) -> Point | None:
    """The point to recommend; None if no point that may be recommended drops a pair labelled `same`.

    Of points that the labels cannot tell apart: that of the profile in force, else that of the profile for
    this kind of text, at its own similarity.

    different: number of pairs labelled `different`; kind: as of `profile_of`
    """
    worths = [(_worth(point.judged, different), point) for point in points if _may_be_used(point)]

    def order(entry: tuple[float, Point]) -> tuple[float, bool, bool, int]:
        worth, point = entry
        profile = point.curve.profile
        return (
            worth,
            profile == settings.profile,
            profile == kind,
            -abs(point.similarity - own_similarity(profile)),
        )

    worth, point = max(worths, key=order, default=(0.0, None))
    return point if worth else None


def own_similarity(profile: str) -> int:
    """The similarity of a profile, out of SIMILARITY_SCALE."""
    own = PROFILES[profile].get("similarity", _DEFAULTS.similarity)
    assert isinstance(own, int)
    return own


def _worth(judged: Judged | None, different: int) -> float:
    """The F measure of the lower end of the interval of precision and of recall, 0 to 1."""
    if judged is None or not judged.precision.hits:
        return 0.0
    right, wrong = judged.precision.hits, judged.precision.of - judged.precision.hits
    slip = (wrong + _SLIP * _WEIGHT) / (different + _WEIGHT)
    dropped = right + different * slip
    low, _ = wilson(right / dropped, dropped, LEVEL)
    recall = judged.recall.value
    return (1 + _BETA**2) * low * recall / (_BETA**2 * low + recall)


def _may_be_used(point: Point) -> bool:
    """Whether a profile has these settings, and a run with them finds most of what is alike."""
    near = point.curve.settings.near
    low_floor = near.candidates == "scan" or near.layout.bands >= LOW_FLOOR_LAYOUT.bands
    return point.curve.profile != "" and (low_floor or point.similarity >= _DEFAULTS.similarity)


def _missing(labels: Labels) -> str | None:
    """What the labels lack, and what to do; None if they suffice."""
    same, different = labels.count("same"), labels.count("different")
    if same + different < LEAST_LABELS:
        return (
            f"{same + different} of {len(labels.pairs)} labelled pairs are same or different, "
            f"{LEAST_LABELS} are needed; label {LEAST_LABELS - same - different} more"
        )
    if not different:
        return "no pair is labelled different, so nothing shows what drops too much; label more pairs"
    if not same:
        return "no pair is labelled same, so nothing shows what drops too little; label more pairs"
    return None


def _shown(share: Share) -> str:
    low, high = share.interval_at(LEVEL)
    return f"{share.value:.3f} ({LEVEL:.0%} interval {low:.3f} to {high:.3f})"


def _settings_in_force(points: Sequence[Point], settings: Settings, chosen: Point) -> list[str]:
    """How the settings in force compare, if the sweep has their similarity."""
    for point in points:
        if point.similarity == settings.near.similarity and point.curve.settings == settings:
            if point == chosen:
                return ["your settings do the same already"]
            if point.judged is not None:
                precision, recall = point.judged.precision.value, point.judged.recall.value
                return [f"your settings as they are: precision {precision:.3f}, recall {recall:.3f}"]
    return []


def _about_kind(
    points: Sequence[Point], chosen: Point, kind: str | None, sampled: Sequence[str]
) -> list[str]:
    """That another profile is for this kind of text, if so, and what it does with the labelled pairs."""
    line = misfit_line(chosen.curve.profile, sampled)
    if line is None:
        return []
    for point in points:
        if kind and point.curve.profile == kind and point.similarity == own_similarity(kind) and point.judged:
            precision, recall = point.judged.precision.value, point.judged.recall.value
            at = similarity_text(point.similarity)
            line += f". By your labels {kind} from {at} on has precision {precision:.3f}, recall {recall:.3f}"
    return [f"{line}. The labels alone speak for {chosen.curve.profile} here"]


def _about_limits(limits: Mapping[str, int], without: Judged, labels: int) -> list[str]:
    """What the limits bring, or why none are recommended."""
    if labels < LIMITS_FROM:
        return [f"limits are recommended from {LIMITS_FROM} labels on"]
    if not limits:
        return ["the limits stay as they are: the labels show no better ones"]
    precision, recall = without.precision.value, without.recall.value
    return [f"without these limits: precision {precision:.3f}, recall {recall:.3f}"]


def _more_labels(dropped: Share, labels: int) -> str:
    """How many more labels would narrow the interval of precision, if they are like these.

    labels: number of labelled pairs
    """
    low, high = dropped.interval_at(LEVEL)
    wanted = [half for half in NARROW if high - low > 2 * half]
    if not wanted:
        return f"the interval of precision is narrow: ± {(high - low) / 2:.3f}"
    told, of = [], dropped.of
    for half in wanted:
        # The middle of the interval and not the share: a share of 1 of few pairs would promise too much.
        while _half_width((low + high) / 2, of) > half:
            of += 1
        more = math.ceil((of - dropped.of) * labels / dropped.of / 10) * 10
        told.append(f"to ± {half:g} with about {more:,} more labels")
    return f"the interval of precision narrows {', '.join(told)}"


def _half_width(share: float, of: int) -> float:
    low, high = wilson(share, of, LEVEL)
    return (high - low) / 2


def _yaml(point: Point, limits: Mapping[str, int]) -> str:
    lines = [f"profile: {point.curve.profile}", "near:", f"  similarity: {similarity_text(point.similarity)}"]
    if limits:
        lines.append("  limits:")
    for name, value in limits.items():
        key = f"near.limits.{name}"
        lines.append(f"    {name}: {value_text(key, declared()[key], value)}")
    return "\n".join([*lines, ""])
