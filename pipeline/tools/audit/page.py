"""The page of `audit --html`: counts, plots, biggest clusters and drops, in one file of bounded size."""

from __future__ import annotations

from typing import Any

from twinsieve.pipeline.basics.shown_amounts import step
from twinsieve.pipeline.messages.verdict_values import LIKENESS_WORDS, MEANINGS
from twinsieve.pipeline.pages.plots import COLOURS, figure, style, svg_of
from twinsieve.pipeline.pages.render import render, svg_image
from twinsieve.pipeline.tools.audit.apart import Reasons
from twinsieve.pipeline.tools.audit.drop_table import moment
from twinsieve.pipeline.tools.audit.findings import PARTS, Tell, clusters_of, sentence
from twinsieve.pipeline.tools.audit.run_stats import RunStats
from twinsieve.pipeline.tools.audit.store import HUNDREDTHS, DropTable, RowPart, TimeParts
from twinsieve.pipeline.why.drops import Drop

MOST_CLUSTERS = 200
"""So many clusters a page shows at most, whatever is asked: each may hold five texts."""
_LISTED, _LISTED_CHARACTERS = 1_000, 240
_SAMPLES = 4
_WIDTH, _HEIGHT = 7.0, 2.4
_LABELS = 7


def page(
    drops: DropTable,
    *,
    top: int,
    tell: Tell,
    name: str,
    asked: str,
    kept_apart: str | None,
    reasons: Reasons | None,
    run: RunStats | None,
) -> bytes:
    """The page as HTML, which needs no other file.

    top: number of clusters; name: of the file of drops, as shown
    asked: how the drops were chosen, in words, empty for all
    kept_apart: name of the file that the reasons come from
    """
    clusters = clusters_of(drops, min(top, MOST_CLUSTERS), _SAMPLES, tell)
    rows, times = drops.row_parts(PARTS), drops.times(PARTS)
    return render(
        "audit.html",
        script="audit.js",
        name=name,
        asked=asked,
        kept_apart=kept_apart,
        drops=drops.drops,
        stages=drops.stages.items(),
        flags=drops.flags.items(),
        bands=drops.bands,
        leaders=drops.leaders,
        unled=drops.unled,
        sizes=_size_bands(drops.sizes),
        extent=drops,
        share=None if drops.rows is None else drops.drops / drops.rows,
        sentence=sentence(drops, run),
        run=run,
        row_parts=[{"part": part, "times": _times(part)} for part in rows],
        time_parts=[(_short(start, times.span_ms), count) for start, count in times.parts],
        span=step(times.span_ms),
        rate=times,
        near_plot=_near_plot(drops),
        rate_plot=_rate_plot(rows),
        time_plot=_time_plot(times),
        reasons=_reasons(reasons),
        clusters=[
            {
                "leader": str(cluster.leader),
                "drops": cluster.drops,
                "share": cluster.drops / drops.drops,
                "samples": [_drop(sample) for sample in cluster.samples],
            }
            for cluster in clusters
        ],
        clustered=sum(cluster.drops for cluster in clusters),
        listed=[_drop(drop) for drop in tell(drops.spread(_LISTED, _LISTED_CHARACTERS))],
    ).html


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


def _reasons(reasons: Reasons | None) -> list[dict[str, Any]]:
    if reasons is None:
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
                for one in reasons.examples[reason]
            ],
        }
        for reason, count in reasons.counts.most_common()
    ]


def _size_bands(sizes: list[tuple[int, int]]) -> list[tuple[str, int, int]]:
    """Clusters by their size: in words, number of clusters, and drops in them. sizes: (drops, clusters)"""
    found = []
    for first, last in ((1, 1), (2, 4), (5, 9), (10, 99), (100, 999), (1000, None)):
        inside = {size: count for size, count in sizes if first <= size <= (last or size)}
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


def _times(part: RowPart) -> str | None:
    if part.from_ms is None or part.to_ms is None:
        return None
    return f"{moment(part.from_ms):%Y-%m-%d %H:%M} to {moment(part.to_ms):%Y-%m-%d %H:%M}"


def _short(time_ms: int, span_ms: int) -> str:
    """The time, as exact as parts of this length need."""
    if span_ms >= 86_400_000:
        return f"{moment(time_ms):%Y-%m-%d}"
    return f"{moment(time_ms):%Y-%m-%d %H:%M:%S}" if span_ms < 60_000 else f"{moment(time_ms):%Y-%m-%d %H:%M}"


def _near_plot(drops: DropTable) -> str | None:
    """A histogram of how alike near drops and their leaders are; None without near drops."""
    likeness = drops.near
    measures = sorted({measure for measure, *_ in likeness})
    if not measures:
        return None
    with style():
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        made = figure(_WIDTH, _HEIGHT * len(measures), rows=len(measures))
        for axes, measure in zip(made.axes, measures, strict=True):
            units = [unit for name, unit, _ in likeness if name == measure]
            scale = HUNDREDTHS if measure == "similarity" else 1
            counts = [count for name, _, count in likeness if name == measure]
            axes.bar([unit / scale for unit in units], counts, width=0.9 / scale, align="edge")
            axes.set_xlabel(LIKENESS_WORDS[measure])
            axes.set_ylabel("near drops")
            _whole_numbers(axes.yaxis)
            if measure == "similarity":
                axes.set_xlim(min(units) / scale, 1)
                axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
                axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2f}"))
    return svg_image(svg_of(made))


def _rate_plot(parts: list[RowPart]) -> str | None:
    """The share of dropped rows over the run; None if positions do not tell."""
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


def _time_plot(times: TimeParts) -> str | None:
    """Drops over time; None if no drop has a time."""
    parts, span_ms = times.parts, times.span_ms
    if not parts:
        return None
    with style():
        made = figure(_WIDTH, _HEIGHT)
        (axes,) = made.axes
        axes.bar(range(len(parts)), [count for _, count in parts], width=0.9)
        every = -(-len(parts) // _LABELS)
        labelled = range(0, len(parts), every)
        labels = [_short(parts[number][0], span_ms).replace(" ", "\n") for number in labelled]
        axes.set_xticks(list(labelled), labels)
        axes.set_ylabel(f"drops each {step(span_ms)}")
        axes.grid(visible=False, axis="x")
        _whole_numbers(axes.yaxis)
    return svg_image(svg_of(made))


def _whole_numbers(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
