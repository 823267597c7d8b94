"""The page of `audit --html`: counts, plots, biggest clusters and drops, in one file of bounded size."""

from __future__ import annotations

from typing import Any

from twinsieve.pipeline.basics.amounts import step
from twinsieve.pipeline.messages.columns import LIKENESS_WORDS, MEANINGS
from twinsieve.pipeline.pages.plots import COLOURS, figure, style, svg_of
from twinsieve.pipeline.pages.render import render, svg_image
from twinsieve.pipeline.tools.audit.findings import Findings, Sizes
from twinsieve.pipeline.tools.audit.rate import RowPart
from twinsieve.pipeline.tools.audit.table import moment
from twinsieve.pipeline.tools.audit.totals import HUNDREDTHS
from twinsieve.pipeline.why.drops import Drop

MOST_CLUSTERS = 200
"""So many clusters a page shows at most, whatever is asked: each may hold five texts."""
_LISTED = 1_000
_SAMPLES = 4
PARTS = 60
"""The largest number of parts of the drop rate."""
_WIDTH, _HEIGHT = 7.0, 2.4
_LABELS = 7


def page_sizes(clusters: int) -> Sizes:
    """What the page needs. clusters: how many were asked for"""
    return Sizes(min(clusters, MOST_CLUSTERS), samples=_SAMPLES, parts=PARTS, listed=_LISTED)


def page(found: Findings, *, name: str, asked: str, kept_apart: str | None) -> bytes:
    """The page as HTML, which needs no other file.

    name: of the file of drops, as shown; asked: how the drops were chosen, in words, empty for all
    kept_apart: name of the file that the reasons come from
    """
    totals, rate = found.totals, found.rate
    rows = totals.extent.rows
    clusters = found.clusters[:MOST_CLUSTERS]
    return render(
        "audit.html",
        script="audit.js",
        name=name,
        asked=asked,
        kept_apart=kept_apart,
        drops=totals.drops,
        stages=totals.stages.most_common(),
        flags=totals.flags.most_common(),
        bands=totals.bands(),
        leaders=len(totals.leaders),
        unled=totals.unled,
        sizes=_size_bands(totals.leaders.sizes()),
        extent=totals.extent,
        share=None if rows is None else totals.drops / rows,
        sentence=found.sentence,
        run=found.run,
        row_parts=[_row_part(part) for part in rate.rows],
        time_parts=[(_short(part.start_ms, rate.span_ms), part.drops) for part in rate.times],
        span=step(rate.span_ms),
        rate=rate,
        near_plot=_near_plot(found),
        rate_plot=_rate_plot(found),
        time_plot=_time_plot(found),
        reasons=_reasons(found),
        clusters=[_cluster(cluster, totals.drops) for cluster in clusters],
        clustered=sum(cluster.drops for cluster in clusters),
        listed=[_drop(drop) for drop in found.listed],
    ).html


def _cluster(cluster: Any, drops: int) -> dict[str, Any]:
    return {
        "leader": str(cluster.leader),
        "text": cluster.leader.text,
        "drops": cluster.drops,
        "share": cluster.drops / drops,
        "samples": [_drop(sample) for sample in cluster.samples],
    }


def _drop(drop: Drop) -> dict[str, Any]:
    """What the page shows of a drop; every value is text, a number or None."""
    return {
        "message": str(drop.message),
        "degree": drop.degree,
        "leader": None if drop.leader is None else str(drop.leader),
        "flags": ", ".join(drop.flags),
        "time": "" if drop.time_ms is None else f"{moment(drop.time_ms):%Y-%m-%d %H:%M:%S} UTC",
        "kept": None if drop.leader is None else drop.leader.text,
        "dropped": drop.message.text or "",
    }


def _reasons(found: Findings) -> list[dict[str, Any]]:
    if found.reasons is None:
        return []
    return [
        {
            "reason": reason,
            "meaning": MEANINGS.get(reason, ""),
            "rows": count,
            "examples": [
                {
                    "message": str(one.message),
                    "other": str(one.other),
                    "says": None if one.says is None else f"{one.other_says or ''} → {one.says}",
                    "kept": one.other.text,
                    "apart": one.message.text or "",
                }
                for one in found.reasons.examples[reason]
            ],
        }
        for reason, count in found.reasons.counts.most_common()
    ]


def _size_bands(sizes: dict[int, int]) -> list[tuple[str, int, int]]:
    """Clusters by their size: in words, number of clusters, and drops in them. sizes: clusters by drops"""
    found = []
    for first, last in ((1, 1), (2, 4), (5, 9), (10, 99), (100, 999), (1000, None)):
        inside = {size: count for size, count in sizes.items() if size >= first and size <= (last or size)}
        if inside:
            words = (
                f"{first:,} or more"
                if last is None
                else f"{first}"
                if last == first
                else f"{first} to {last}"
            )
            drops = sum(size * count for size, count in inside.items())
            found.append((words, sum(inside.values()), drops))
    return found


def _row_part(part: RowPart) -> dict[str, Any]:
    times = None
    if part.from_ms is not None and part.to_ms is not None:
        times = f"{moment(part.from_ms):%Y-%m-%d %H:%M} to {moment(part.to_ms):%Y-%m-%d %H:%M}"
    return {"part": part, "times": times}


def _short(time_ms: int, span_ms: int) -> str:
    """The time, as exact as parts of this length need."""
    if span_ms >= 86_400_000:
        return f"{moment(time_ms):%Y-%m-%d}"
    return f"{moment(time_ms):%Y-%m-%d %H:%M:%S}" if span_ms < 60_000 else f"{moment(time_ms):%Y-%m-%d %H:%M}"


def _near_plot(found: Findings) -> str | None:
    """A histogram of how alike near drops and their leaders are; None without near drops."""
    likeness = found.totals.likeness
    measures = sorted({measure for measure, _ in likeness})
    if not measures:
        return None
    with style():
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        made = figure(_WIDTH, _HEIGHT * len(measures), rows=len(measures))
        for axes, measure in zip(made.axes, measures, strict=True):
            units = sorted(unit for name, unit in likeness if name == measure)
            scale = HUNDREDTHS if measure == "similarity" else 1
            counts = [likeness[measure, unit] for unit in units]
            axes.bar([unit / scale for unit in units], counts, width=0.9 / scale, align="edge")
            axes.set_xlabel(LIKENESS_WORDS[measure])
            axes.set_ylabel("near drops")
            _whole_numbers(axes.yaxis)
            if measure == "similarity":
                axes.set_xlim(min(units) / scale, 1)
                axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
                axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2f}"))
    return svg_image(svg_of(made))


def _rate_plot(found: Findings) -> str | None:
    """The share of dropped rows over the run; None if positions do not tell."""
    parts = found.rate.rows
    if not parts:
        return None
    with style():
        from matplotlib.ticker import FuncFormatter

        made = figure(_WIDTH, _HEIGHT)
        (axes,) = made.axes
        edges = [parts[0].first, *(part.last + 1 for part in parts)]
        axes.stairs([part.share for part in parts], edges, fill=True, color=COLOURS[0], alpha=0.2)
        axes.stairs([part.share for part in parts], edges, color=COLOURS[0], linewidth=1.5, baseline=None)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("row of the run")
        axes.set_ylabel("share dropped")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.3g}%"))
        _whole_numbers(axes.xaxis)
    return svg_image(svg_of(made))


def _time_plot(found: Findings) -> str | None:
    """Drops over time; None if no drop has a time."""
    parts, span_ms = found.rate.times, found.rate.span_ms
    if not parts:
        return None
    with style():
        made = figure(_WIDTH, _HEIGHT)
        (axes,) = made.axes
        axes.bar(range(len(parts)), [part.drops for part in parts], width=0.9)
        every = -(-len(parts) // _LABELS)
        labelled = range(0, len(parts), every)
        labels = [_short(parts[number].start_ms, span_ms).replace(" ", "\n") for number in labelled]
        axes.set_xticks(list(labelled), labels)
        axes.set_ylabel(f"drops each {step(span_ms)}")
        axes.grid(visible=False, axis="x")
        _whole_numbers(axes.yaxis)
    return svg_image(svg_of(made))


def _whole_numbers(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
