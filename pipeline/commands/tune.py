"""`twinsieve tune`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.commands.options import (
    FILE_NAME,
    FormatFlags,
    SettingsFlags,
    format_options,
    settings_options,
)
from twinsieve.pipeline.commands.terminal import examples, report, say_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from twinsieve.pipeline.settings.model import Settings
    from twinsieve.pipeline.tune.advice import Advice
    from twinsieve.pipeline.tune.sweep import Point

_ROWS = 60_000
_REPORT = "tune.html"
_LABEL_PAIRS = 60
_MOST_LABEL_PAIRS = 500
_MOST_THREADS = 4
"""Without --threads: each thread has a sieve of its own, of about 0.4 GiB."""


@click.command(
    "tune",
    epilog=examples(
        "twinsieve tune posts.jsonl",
        "twinsieve tune posts.jsonl --judged labels.tsv --report labelled.html",
        "twinsieve tune posts/ --rows 5000",
    ),
)
@click.argument("inputs", nargs=-1, type=FILE_NAME, metavar="[INPUT]...")
@settings_options
@click.option(
    "--rows", default=_ROWS, type=click.IntRange(1), help=f"Try on the first N rows ({_ROWS}).", metavar="N"
)
@click.option(
    "--judged",
    type=FILE_NAME,
    metavar="LABELS",
    help="Labels of pairs in INPUT, which the report makes: shows precision and recall too.",
)
@click.option(
    "--pairs",
    "pairs_file",
    type=FILE_NAME,
    metavar="PAIRS",
    help="True pairs of INPUT, as `evaluate` reads them: shows precision and recall of the drops.",
)
@click.option(
    "--report",
    "report_file",
    default=_REPORT,
    type=FILE_NAME,
    help=f"The report, an HTML page ({_REPORT}).",
)
@click.option(
    "--label-pairs",
    default=_LABEL_PAIRS,
    type=click.IntRange(0, _MOST_LABEL_PAIRS),
    metavar="N",
    help=f"Show N pairs to label ({_LABEL_PAIRS}).",
)
@click.option("--stats", type=FILE_NAME, help="The figures of the report, JSON.")
@format_options("Format of inputs (by file name).")
def command(
    inputs: tuple[str, ...],
    rows: int,
    judged: str | None,
    pairs_file: str | None,
    report_file: str,
    label_pairs: int,
    stats: str | None,
    spelt: FormatFlags,
    flags: SettingsFlags,
) -> None:
    """Show what each similarity from 0.70 to 0.95 drops of INPUTs: a table, and a report as one HTML page.

    This is tried with your settings under each level of near.differences, and under each profile. Each figure
    is that of a `dedup` of the same rows with these settings.

    The report also shows how similar the pairs are, clusters, reasons, windows and costs. In it you label
    pairs (same, different, unsure) and download the labels. With --judged each point then shows precision
    (the share of the dropped pairs that you labelled same; pairs labelled unsure are left out) and recall,
    and a profile and a similarity are recommended, or the reason why not. The report holds messages: it is
    readable for you alone.
    """
    from twinsieve.pipeline.commands.warm_up import loading
    from twinsieve.pipeline.evaluate.judged import names_in, read_judged
    from twinsieve.pipeline.evaluate.row_names import NamedTexts
    from twinsieve.pipeline.evaluate.truth import read_pairs
    from twinsieve.pipeline.files.address import path_here
    from twinsieve.pipeline.files.format import (
        refuse_empty_names,
        refuse_endings_of_reports,
        refuse_other_endings,
        refuse_packed_endings,
    )
    from twinsieve.pipeline.files.messages import InputReader
    from twinsieve.pipeline.files.names import expand
    from twinsieve.pipeline.files.write import STDOUT, Output, refuse_clashes
    from twinsieve.pipeline.settings.load import load_settings
    from twinsieve.pipeline.tune.advice import advise
    from twinsieve.pipeline.tune.ideal import IdealDrops
    from twinsieve.pipeline.tune.in_force import InForce
    from twinsieve.pipeline.tune.labels import distinct_labels
    from twinsieve.pipeline.tune.page import report_of, report_page
    from twinsieve.pipeline.tune.points import points_json
    from twinsieve.pipeline.tune.sample import read_sample
    from twinsieve.pipeline.tune.sweep import SIMILARITIES, curves_of, sweep, with_keys

    config = path_here("-c", flags.config) if flags.config is not None else None
    overrides = flags.overrides()

    def settings_with(keys: dict[str, str]) -> Settings:
        return load_settings(config, os.environ, with_keys(overrides, keys), on_files=True)

    settings = settings_with({})
    curves = curves_of(settings_with)
    refuse_empty_names(list(inputs))
    names = expand(list(inputs) or ["-"], [stats, report_file]).names
    dialect = spelt.dialect_of(names, settings)
    read = [*names, *(name for name in (judged, pairs_file) if name is not None)]
    written = {"the table": STDOUT, "--report": report_file, "--stats": stats}
    refuse_clashes(read, written, settings=settings, config=flags.config)
    refuse_endings_of_reports({"--stats": stats})
    refuse_other_endings("HTML", ("HTML",), {"--report": report_file})
    refuse_packed_endings({"--report": report_file})
    labels = distinct_labels(read_judged(path_here("--judged", judged)) if judged is not None else [])
    pairs = read_pairs(path_here("--pairs", pairs_file)) if pairs_file is not None else None
    named = NamedTexts(names_in(labels.pairs))
    # Opened before the work, so that a folder that cannot be written is said at once.
    with Output(report_file, mode=0o600, packed=False) as output:
        sample = read_sample(names, InputReader(settings, dialect), rows, named)
        if len(sample) < sample.rows:
            say_error(
                f"{sample.rows - len(sample):,} of {sample.rows:,} rows hold no message that can be read"
            )
        ideal = None
        if pairs is not None and pairs_file is not None:
            ideal = IdealDrops(sample, pairs, SIMILARITIES, pairs_file)
        in_force = InForce(settings, settings_with, sample.time_span_ms())
        with loading():
            swept = sweep(
                sample,
                curves,
                int(time.time() * 1000),
                settings.near.shards or min(os.cpu_count() or 1, _MOST_THREADS),
                labels.pairs,
                named.texts,
                ideal=ideal,
                look=in_force.look,
            )
            points = _told(swept, len(curves) * len(SIMILARITIES))
        advice = None
        if judged is not None:
            own = settings != load_settings(None, {}, on_files=True)
            advice = advise(points, labels, named.texts, settings, own=own)
        made = report_of(sample, points, in_force, names, labels, label_pairs, ideal, advice)
        output.write(report_page(made))
        output.finish()
    if stats is not None:
        with Output(stats) as output:
            output.write(points_json(made))
            output.finish()
    # Printed when all files are written, since `| head` ends the command.
    report().print(_table(points, settings))
    if advice is not None:
        _print_advice(advice)
    say_error(f"{report_file}: the report, with pairs to label; it holds posts, so its mode is 0600")


def _told(swept: Iterator[Point], asked: int) -> list[Point]:
    """The points; lines on stderr say how many of `asked` are done."""
    points = []
    said = time.monotonic()
    for point in swept:
        points.append(point)
        if time.monotonic() - said > 5:
            said = time.monotonic()
            say_error(f"{len(points):,} of {asked:,} settings tried")
    return points


def _print_advice(advice: Advice) -> None:
    """Print the settings so that they can be copied, and why they are recommended."""
    settings = ["recommended settings:", *advice.yaml.splitlines()] if advice.yaml is not None else []
    for line in [*settings, advice.reason, *advice.lines]:
        report().print(line, soft_wrap=True)


def _table(points: Sequence[Point], settings: Settings) -> Table:
    """Similarities down, curves across; a star stands beside the similarity in force."""
    from rich.table import Table
    from rich.text import Text

    from twinsieve.pipeline.tune.sweep import similarity_text

    has_labels = any(point.judged is not None for point in points)
    what = "dropped, precision, recall" if has_labels else "dropped"
    table = Table(title=Text(f"{what} of {points[0].messages:,} messages"), title_justify="left")
    table.add_column("alike from", justify="right")
    rows: dict[int, list[Text]] = {}
    for name in dict.fromkeys(point.curve.name for point in points):
        table.add_column(Text(name.replace(", ", "\n")), justify="right")
    for point in points:
        cell = f"{point.drop_share:.1%}"
        if point.judged is not None:
            cell += f"  {point.judged.precision.value:.3f}  {point.judged.recall.value:.3f}"
        rows.setdefault(point.similarity, []).append(Text(cell))
    for similarity, cells in rows.items():
        star = " *" if similarity == settings.near.similarity else ""
        table.add_row(Text(similarity_text(similarity) + star), *cells)
    table.caption, table.caption_justify = Text("* what your settings ask for"), "left"
    return table
