"""The report of a sweep as one HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from twinsieve.pipeline.basics.amounts import repeats, share, span
from twinsieve.pipeline.pages.render import render, svg_image
from twinsieve.pipeline.settings.show import deciding_settings
from twinsieve.pipeline.tools.evaluate.judged import LABELS
from twinsieve.pipeline.tools.tune import plots
from twinsieve.pipeline.tools.tune.advice import Advice
from twinsieve.pipeline.tools.tune.costs import CurveCost, costs_of
from twinsieve.pipeline.tools.tune.ideal import IdealDrops
from twinsieve.pipeline.tools.tune.in_force import SIZES, Clusters, InForce
from twinsieve.pipeline.tools.tune.label_pairs import BANDS, draw
from twinsieve.pipeline.tools.tune.labels import Labels
from twinsieve.pipeline.tools.tune.sample import Sample
from twinsieve.pipeline.tools.tune.shown_pairs import ShownPair, name_of_draw, shown_pairs
from twinsieve.pipeline.tools.tune.sweep import Point, similarity_text
from twinsieve.stages.contract import SIMILARITY_SCALE
from twinsieve.stages.differ.rules import Rule

_MAX_BEGINNING = 240
_SEEN = 0.02
"""Lines that are nearer than this share of the height of a plot lie on one another."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the page shows.

    inputs: names of the inputs; draw: `name_of_draw`; other_labels: labels of pairs that are not shown
    labelled: number of labelled pairs by label
    true_pairs: number of messages that the true pairs cover; 0 without them
    """

    inputs: Sequence[str]
    sample: Sample
    points: Sequence[Point]
    in_force: InForce
    costs: Sequence[CurveCost]
    pairs: Sequence[ShownPair]
    draw: str
    labelled: Mapping[str, int] = field(default_factory=dict)
    other_labels: int = 0
    true_pairs: int = 0
    advice: Advice | None = None
    proposed: str | None = None


def report_of(
    sample: Sample,
    points: Sequence[Point],
    in_force: InForce,
    inputs: Sequence[str],
    labels: Labels,
    pairs_shown: int,
    ideal: IdealDrops | None,
    advice: Advice | None,
    proposed: str | None,
) -> Report:
    """The report of a sweep.

    in_force: after the sweep; pairs_shown: number of pairs to label, at most
    proposed: a line on the profile that the texts speak for
    """
    similarity = in_force.settings.near.similarity
    drawn = draw(in_force.candidates, pairs_shown)
    known = {frozenset((pair.later, pair.earlier)): pair.label for pair in labels.pairs}
    curves = list({point.curve.name: point.curve for point in points}.values())
    pairs = shown_pairs(sample, drawn, curves, similarity, known)
    return Report(
        inputs=inputs,
        sample=sample,
        points=points,
        in_force=in_force,
        costs=costs_of(points, similarity),
        pairs=pairs,
        draw=name_of_draw(sample, drawn),
        labelled={label: labels.count(label) for label in LABELS if labels.count(label)},
        other_labels=len(known.keys() - {frozenset((pair.later, pair.earlier)) for pair in pairs}),
        true_pairs=ideal.messages if ideal is not None else 0,
        advice=advice,
        proposed=proposed,
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """Similarities down, curves across. rows: (similarity, whether it is in force, a cell for each curve)"""

    title: str
    rows: list[tuple[str, bool, list[str]]]


@dataclass(frozen=True, slots=True)
class _Quality:
    """Precision and recall by one standard: a plot and its figures."""

    plot: str
    tables: list[_Table]


def report_page(report: Report) -> bytes:
    """The page. Every text in it is escaped; plots are images; a script labels pairs, and nothing else."""
    points, in_force = report.points, report.in_force
    own = in_force.settings.near.similarity
    judged = [(point, point.judged) for point in points if point.judged is not None]
    scored = [(point, point.scored) for point in points if point.scored is not None]
    by_truth = _quality(scored, own)
    if by_truth is not None:
        by_truth.tables.append(_table("F1", [(point, f"{score.f1:.3f}") for point, score in scored], own))
    curves = list({point.curve.name: point.curve for point in points}.values())
    edges = [f"{edge / SIMILARITY_SCALE:.2f}" for edge in in_force.histogram.edges]
    sizes = size_names(in_force.clusters)
    return render(
        "tune.html",
        script="tune.js",
        report=report,
        in_force=in_force,
        inputs=", ".join(report.inputs),
        curves=curves,
        own=similarity_text(own),
        own_name=next((curve.name for curve in curves if curve.is_own), ""),
        drop_plot=svg_image(plots.drop_shares(points, own)),
        drop_table=_table("", [(point, share(point.drop_share)) for point in points], own),
        alike=_alike(points),
        sentence=repeats(
            in_force.exact + in_force.near,
            in_force.messages,
            max((count for _, count in in_force.clusters.biggest), default=0),
        ),
        settings=deciding_settings(in_force.settings),
        by_labels=_quality(judged, own),
        by_truth=by_truth,
        histogram_plot=svg_image(plots.similarities(in_force.histogram, own)),
        histogram=list(zip(edges, in_force.histogram.dropped, in_force.histogram.apart, strict=True)),
        reasons=_reasons(points, in_force),
        clusters_plot=svg_image(plots.cluster_sizes(in_force.clusters, sizes)),
        clusters=[
            (name, count, dropped)
            for name, (_, count, dropped) in zip(sizes, in_force.clusters.sizes, strict=True)
        ],
        biggest=[
            (report.sample.text(position)[:_MAX_BEGINNING], position, count)
            for position, count in in_force.clusters.biggest
        ],
        windows_plot=svg_image(plots.windows(in_force.windows)),
        span=span(in_force.time_span_ms / 1000) if in_force.time_span_ms is not None else None,
        by_age=in_force.by_age,
        bands=_bands(report.pairs),
        labels=LABELS,
    ).html


def size_names(clusters: Clusters) -> list[str]:
    """Names of the classes of clusters that occur, as `4–5`."""
    after = dict(pairwise(SIZES))
    return [_size_name(first, after.get(first)) for first, _, _ in clusters.sizes]


def _size_name(first: int, after: int | None) -> str:
    if after is None:
        return f"{first:,}+"
    return f"{first}" if after == first + 1 else f"{first}–{after - 1:,}"


def _quality(measured: Sequence[plots.Measured], own: int) -> _Quality | None:
    if not measured:
        return None
    return _Quality(
        svg_image(plots.precision_and_recall(measured, own)),
        [
            _table("Precision", [(point, str(quality.precision)) for point, quality in measured], own),
            _table("Recall", [(point, str(quality.recall)) for point, quality in measured], own),
        ],
    )


def _table(title: str, cells: Iterable[tuple[Point, str]], own: int) -> _Table:
    rows: dict[int, list[str]] = {}
    for point, cell in cells:
        rows.setdefault(point.similarity, []).append(cell)
    return _Table(
        title, [(similarity_text(similarity), similarity == own, row) for similarity, row in rows.items()]
    )


def _alike(points: Sequence[Point]) -> list[tuple[list[str], float]]:
    """Groups of curves that lie on one another in the plot: their names, and their greatest distance."""
    lines = {line[0].curve.name: [point.drop_share for point in line] for line in plots.by_curve(points)}
    apart = _SEEN * (max(map(max, lines.values())) - min(map(min, lines.values())))
    groups: list[list[str]] = []
    for name, line in lines.items():
        for group in groups:
            if all(_distance(line, lines[other]) <= apart for other in group):
                group.append(name)
                break
        else:
            groups.append([name])
    return [
        (group, max(_distance(lines[one], lines[other]) for one in group for other in group))
        for group in groups
        if len(group) > 1
    ]


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def _reasons(points: Sequence[Point], in_force: InForce) -> list[tuple[Rule, list[int]]]:
    """By rule: how many messages it kept apart under each curve, at the similarity nearest to the own one."""
    own = in_force.settings.near.similarity
    near = min({point.similarity for point in points}, key=lambda similarity: abs(similarity - own))
    there = [point for point in points if point.similarity == near]
    rules = [rule for rule in Rule if rule and any(rule.words in point.kept_apart for point in there)]
    return [(rule, [point.kept_apart.get(rule.words, 0) for point in there]) for rule in rules]


def _bands(pairs: Sequence[ShownPair]) -> list[tuple[str, int]]:
    """Number of shown pairs in each band of similarity."""
    return [
        (
            f"{low / SIMILARITY_SCALE:.2f}–{high / SIMILARITY_SCALE:.2f}",
            sum(low <= pair.similarity < high for pair in pairs),
        )
        for low, high in BANDS
    ]
