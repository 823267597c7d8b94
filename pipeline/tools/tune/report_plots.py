"""The plots of the report. No text of a user is drawn: curves have names of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twinsieve.pipeline.pages.plots import COLOURS, figure, style, svg_of
from twinsieve.pipeline.tools.tune.sweep import Judged, Point
from twinsieve.stages.contract import SIMILARITY_SCALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = ("--", "-.", ":")
_MARKS = "os^DvPX"
_BETWEEN_MARKS = 7
"""Points between two marks of a line. Each line has its own places for them, so that of lines that lie on one
another the marks of each are seen."""
_MARK = "#5b6876"
_WIDE = 10.0, 3.6
_FROM = "similarity from which a message is dropped"

Measured = tuple[Point, Judged]
"""A point with its precision and recall."""


def drop_shares(points: Sequence[Point], own: int) -> bytes:
    """Drop share against similarity, a line for each curve. own: the similarity in force"""
    with style():
        made = figure(*_WIDE)
        (axes,) = made.axes
        for number, line in enumerate(by_curve(points)):
            across = [point.similarity / SIMILARITY_SCALE for point in line]
            up = [100 * point.drop_share for point in line]
            axes.plot(across, up, label=_wrapped(line[0].curve.name), **_look(number, line[0].curve.is_own))
        axes.set(xlabel=_FROM, ylabel="dropped, %")
        _mark(axes, own)
        _legend_beside(axes)
    return svg_of(made)


def precision_and_recall(measured: Sequence[Measured], own: int) -> bytes:
    """Precision and recall against similarity in two panels; a band shows the interval of the own curve."""
    lines: dict[str, list[Measured]] = {}
    for point, quality in measured:
        lines.setdefault(point.curve.name, []).append((point, quality))
    with style():
        made = figure(*_WIDE, columns=2)
        for number, (name, line) in enumerate(lines.items()):
            is_own = line[0][0].curve.is_own
            look = _look(number, is_own)
            across = [point.similarity / SIMILARITY_SCALE for point, _ in line]
            sides = ([quality.precision for _, quality in line], [quality.recall for _, quality in line])
            for axes, shares in zip(made.axes, sides, strict=True):
                axes.plot(across, [share.value for share in shares], label=_wrapped(name), **look)
                if is_own:
                    low, high = zip(*(share.interval for share in shares), strict=True)
                    axes.fill_between(across, low, high, color=look["color"], alpha=0.13, linewidth=0)
        for axes, name in zip(made.axes, ("precision", "recall"), strict=True):
            axes.set(title=name, xlabel=_FROM)
            _mark(axes, own)
        _legend_beside(made.axes[1])
    return svg_of(made)


def by_curve(points: Sequence[Point]) -> list[list[Point]]:
    """The points of each curve."""
    lines: dict[str, list[Point]] = {}
    for point in points:
        lines.setdefault(point.curve.name, []).append(point)
    return list(lines.values())


def _look(number: int, is_own: bool) -> dict[str, Any]:
    """Colour, dash and marks of a curve; they differ in print too, and the own one is solid and thick."""
    return {
        "marker": _MARKS[number % len(_MARKS)],
        "markersize": 5,
        "markevery": (number % _BETWEEN_MARKS, _BETWEEN_MARKS),
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": "-" if is_own else _DASHES[number % len(_DASHES)],
        "linewidth": 2.4 if is_own else 1.4,
    }


def _wrapped(name: str) -> str:
    return name.replace(", ", "\n")


def _mark(axes: Axes, own: int) -> None:
    axes.axvline(own / SIMILARITY_SCALE, color=_MARK, linewidth=1, linestyle=(0, (2, 2)))


def _legend_beside(axes: Axes) -> None:
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
