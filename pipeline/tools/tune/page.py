"""The report of a sweep as one HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from twinsieve.pipeline.basics.shown_amounts import repeats, share
from twinsieve.pipeline.pages.render import render, svg_image
from twinsieve.pipeline.settings.show import deciding_settings
from twinsieve.pipeline.tools.evaluate.judged import LABELS
from twinsieve.pipeline.tools.tune import report_plots
from twinsieve.pipeline.tools.tune.advice import Advice
from twinsieve.pipeline.tools.tune.in_force import InForce
from twinsieve.pipeline.tools.tune.label_pairs import BANDS, draw
from twinsieve.pipeline.tools.tune.labels import Labels
from twinsieve.pipeline.tools.tune.sample import Sample
from twinsieve.pipeline.tools.tune.shown_pairs import ShownPair, name_of_draw, shown_pairs
from twinsieve.pipeline.tools.tune.sweep import Point, similarity_text
from twinsieve.stages.contract import SIMILARITY_SCALE
from twinsieve.stages.differ.rules import Rule

_SEEN = 0.02
"""Lines that are nearer than this share of the height of a plot lie on one another."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the page shows.

    inputs: names of the inputs; draw: `name_of_draw`; other_labels: labels of pairs that are not shown
    labelled: number of labelled pairs by label
    """

    inputs: Sequence[str]
    sample: Sample
    points: Sequence[Point]
    in_force: InForce
    pairs: Sequence[ShownPair]
    draw: str
    labelled: Mapping[str, int] = field(default_factory=dict)
    other_labels: int = 0
    advice: Advice | None = None
    proposed: str | None = None


def report_of(
    sample: Sample,
    points: Sequence[Point],
    in_force: InForce,
    inputs: Sequence[str],
    labels: Labels,
    pairs_shown: int,
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
        pairs=pairs,
        draw=name_of_draw(sample, drawn),
        labelled={label: labels.count(label) for label in LABELS if labels.count(label)},
        other_labels=len(known.keys() - {frozenset((pair.later, pair.earlier)) for pair in pairs}),
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
    """Precision and recall by labels: a plot and its figures."""

    plot: str
    tables: list[_Table]


def report_page(report: Report) -> bytes:
    """The page. Every text in it is escaped; plots are images; a script labels pairs, and nothing else."""
    points, in_force = report.points, report.in_force
    own = in_force.settings.near.similarity
    judged = [(point, point.judged) for point in points if point.judged is not None]
    curves = list({point.curve.name: point.curve for point in points}.values())
    return render(
        "tune.html",
        script="tune.js",
        report=report,
        in_force=in_force,
        inputs=", ".join(report.inputs),
        curves=curves,
        own=similarity_text(own),
        own_name=next((curve.name for curve in curves if curve.is_own), ""),
        drop_plot=svg_image(report_plots.drop_shares(points, own)),
        drop_table=_table("", [(point, share(point.drop_share)) for point in points], own),
        alike=_alike(points),
        sentence=repeats(
            in_force.exact + in_force.near,
            in_force.messages,
            in_force.most,
        ),
        settings=deciding_settings(in_force.settings),
        by_labels=_quality(judged, own),
        reasons=_reasons(points, in_force),
        bands=_bands(report.pairs),
        labels=LABELS,
    ).html


def _quality(measured: Sequence[report_plots.Measured], own: int) -> _Quality | None:
    if not measured:
        return None
    return _Quality(
        svg_image(report_plots.precision_and_recall(measured, own)),
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
    lines = {
        line[0].curve.name: [point.drop_share for point in line] for line in report_plots.by_curve(points)
    }
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
