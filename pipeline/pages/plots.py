"""Plots for pages: one style, as SVG without a display; the same drawing gives the same bytes."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0b6bcb", "#c2571a", "#18733a", "#7a3fb5", "#b3261e", "#5b6876", "#a67c00")
"""Colours of lines and bars, in this order; readable on white, and different for colour-blind readers."""
_INK, _QUIET, _LINE = "#1d2733", "#5b6876", "#d5dbe1"


@contextmanager
def style() -> Iterator[None]:
    """The settings of matplotlib for pages, in place of the user's own. They end with the block.

    `figure` and `svg_of` use it by themselves. Draw in it too: a legend, for one, takes the settings of the
    moment when it is made.
    """
    # Where no folder for its fonts can be written, matplotlib makes a temporary one and warns on stderr.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib import rc_context, rcdefaults, rcParams

    with rc_context():
        rcdefaults()
        rcParams.update(
            {
                "axes.axisbelow": True,
                "axes.edgecolor": _LINE,
                "axes.grid": True,
                "axes.labelcolor": _QUIET,
                "axes.labelsize": 9,
                "axes.prop_cycle": f"cycler('color', {list(COLOURS)})",
                "axes.spines.right": False,
                "axes.spines.top": False,
                "axes.titlelocation": "left",
                "axes.titlesize": 10,
                "font.family": "DejaVu Sans",
                "font.size": 9,
                "grid.color": _LINE,
                "grid.linewidth": 0.5,
                "legend.fontsize": 9,
                "legend.frameon": False,
                "svg.fonttype": "path",
                "svg.hashsalt": "twinsieve",
                "text.color": _INK,
                "xtick.color": _LINE,
                "xtick.labelcolor": _QUIET,
                "xtick.labelsize": 9,
                "ytick.color": _LINE,
                "ytick.labelcolor": _QUIET,
                "ytick.labelsize": 9,
            }
        )
        yield


def figure(width: float, height: float, *, rows: int = 1, columns: int = 1) -> Figure:
    """An empty figure with `rows` times `columns` plots, which are its `axes`.

    width, height: in inches; a page shows 96 pixels an inch, and shrinks an image that does not fit

    Axes, ticks, labels and the cycle of colours have their style. Draw with the methods of the axes, never by
    pyplot, which keeps each figure. Labels must not be texts of strangers: matplotlib reads `$` as formulas.

    >>> with style():
    ...     made = figure(6, 3)
    ...     _ = made.axes[0].bar([1, 2], [30, 40])
    """
    with style():
        from matplotlib.figure import Figure

        made = Figure(figsize=(width, height), layout="constrained")
        made.subplots(rows, columns, squeeze=False)
    return made


def svg_of(figure: Figure) -> bytes:
    """The figure as an SVG image with letters as outlines, so that it looks the same without our fonts.

    It holds no date, no version and no random name: figures that are made in the same way give equal bytes.
    For a page pass it to `render.svg_image`. Call this once a figure: drawing changes its layout.
    """
    content = io.BytesIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with style():
        figure.savefig(content, format="svg", metadata=nothing)
    return content.getvalue()
