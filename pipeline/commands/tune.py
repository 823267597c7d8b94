"""`twinsieve tune`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.basics.shown_amounts import share
from twinsieve.pipeline.commands.options import (
    FILE_NAME,
    FormatFlags,
    SettingsFlags,
    format_options,
    settings_options,
)
from twinsieve.pipeline.commands.terminal import examples, report, say_error
from twinsieve.stages.contract import SIMILARITY_SCALE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from twinsieve.pipeline.settings.model import Settings
    from twinsieve.pipeline.tools.tune.advice import Advice
    from twinsieve.pipeline.tools.tune.sweep import Point

_ROWS = 60_000
_REPORT = "tune.html"
_LABEL_PAIRS = 60
_MOST_LABEL_PAIRS = 500
_STEP = 500
"""Between the similarities that are printed, out of SIMILARITY_SCALE."""
_MOST_THREADS = 4
"""Without --threads: each thread has a sieve of its own, of about 0.4 GiB."""


@click.command(
    "tune",
    epilog=examples(
        "twinsieve tune posts.jsonl",
        "twinsieve tune posts.jsonl --judged labels.tsv --report labelled.html",
        "twinsieve tune posts.jsonl --all",
        "twinsieve tune posts/ --rows 5000",
    ),
)
@click.argument("inputs", nargs=-1, type=FILE_NAME, metavar="[INPUT]...")
@settings_options
@click.option(
    "--rows", default=_ROWS, type=click.IntRange(1), help=f"Use the first N rows ({_ROWS}).", metavar="N"
)
@click.option(
    "--judged",
    type=FILE_NAME,
    metavar="LABELS",
    help="Labels that you gave to pairs in the report: adds precision, recall and a recommendation.",
)
@click.option(
    "--report",
    "report_file",
    default=_REPORT,
    type=FILE_NAME,
    help=f"Where to write the report, an HTML page ({_REPORT}).",
)
@click.option(
    "--label-pairs",
    default=_LABEL_PAIRS,
    type=click.IntRange(0, _MOST_LABEL_PAIRS),
    metavar="N",
    help=f"Number of pairs to label in the report ({_LABEL_PAIRS}).",
)
@click.option("--stats", type=FILE_NAME, help="Write the figures of the report as JSON.")
@click.option(
    "--all", "everything", is_flag=True, help="Print all settings and similarities that were tried."
)
@format_options("Format of inputs (by file name).")
def command(
    inputs: tuple[str, ...],
    rows: int,
    judged: str | None,
    report_file: str,
    label_pairs: int,
    stats: str | None,
    everything: bool,
    spelt: FormatFlags,
    flags: SettingsFlags,
) -> None:
    """Show how many messages of INPUTs other settings would drop, in a table and in a report (one HTML page).

    Each similarity from 0.70 to 0.95 is tried with each profile, and with your settings under each level of
    near.differences. Each figure is what `dedup` would give for the same rows with these settings.

    In the report you can label pairs of similar messages (same, different, unsure) and download the labels.
    With --judged LABELS, tune measures precision (the share of the dropped pairs that are labelled same,
    without unsure) and recall, and recommends a profile and a similarity; if the labels do not suffice, it
    says why. The report contains messages, so only you can read the file (mode 0600).
    """
    from twinsieve.pipeline.commands.warm_up import loading
    from twinsieve.pipeline.files.address import path_here
    from twinsieve.pipeline.files.endings import (
        refuse_empty_names,
        refuse_endings_of_reports,
        refuse_other_endings,
        refuse_packed_endings,
    )
    from twinsieve.pipeline.files.expand import expand
    from twinsieve.pipeline.files.input_reader import InputReader
    from twinsieve.pipeline.files.write import STDOUT, Output, refuse_clashes
    from twinsieve.pipeline.pages.extra import require_reports
    from twinsieve.pipeline.settings.load import load_settings
    from twinsieve.pipeline.settings.proposal import SampledTexts, needs_no_profile, proposed
    from twinsieve.pipeline.tools.evaluate.judged import names_in, read_judged
    from twinsieve.pipeline.tools.evaluate.row_names import NamedTexts
    from twinsieve.pipeline.tools.tune.advice import advise
    from twinsieve.pipeline.tools.tune.in_force import InForce
    from twinsieve.pipeline.tools.tune.labels import distinct_labels
    from twinsieve.pipeline.tools.tune.page import report_of, report_page
    from twinsieve.pipeline.tools.tune.points import points_json
    from twinsieve.pipeline.tools.tune.sample import read_sample
    from twinsieve.pipeline.tools.tune.sweep import SIMILARITIES, curves_of, sweep, with_keys

    require_reports("tune")
    config = path_here("-c", flags.config) if flags.config is not None else None
    overrides = flags.overrides()

    def settings_with(keys: dict[str, str]) -> Settings:
        return load_settings(config, os.environ, with_keys(overrides, keys), on_files=True)

    settings = settings_with({})
    curves = curves_of(settings_with)
    refuse_empty_names(list(inputs))
    names = expand(list(inputs) or ["-"], [stats, report_file]).names
    format_ = spelt.format_of(names, settings)
    read = [*names, *([judged] if judged is not None else [])]
    written = {"the table": STDOUT, "--report": report_file, "--stats": stats}
    refuse_clashes(read, written, settings=settings, config=flags.config)
    refuse_endings_of_reports({"--stats": stats})
    refuse_other_endings("HTML", (".html",), {"--report": report_file})
    refuse_packed_endings({"--report": report_file})
    labels = distinct_labels(read_judged(path_here("--judged", judged)) if judged is not None else [])
    named = NamedTexts(names_in(labels.pairs))
    # Opened before the work, so that a folder that cannot be written is said at once.
    with Output(report_file, mode=0o600, packed=False) as output:
        reader = InputReader(settings, format_)
        sample = read_sample(names, reader, rows, named)
        for line in reader.choices():
            say_error(line)
        if len(sample) < sample.rows:
            say_error(
                f"{sample.rows - len(sample):,} of {sample.rows:,} rows hold no message that can be read"
            )
        sampled = SampledTexts()
        for _, columns in sample.parts:
            sampled.add(columns.texts)
        proposal = None if needs_no_profile(settings) else proposed(sampled)
        in_force = InForce(settings)
        with loading():
            swept = sweep(
                sample,
                curves,
                int(time.time() * 1000),
                settings.near.threads or min(os.cpu_count() or 1, _MOST_THREADS),
                labels.pairs,
                named.texts,
                in_force.look,
            )
            points = _told(swept, len(curves) * len(SIMILARITIES))
        advice = None
        if judged is not None:
            own = settings != load_settings(None, {}, on_files=True)
            advice = advise(points, labels, named.texts, settings, own=own, sampled=sampled.texts)
        made = report_of(sample, points, in_force, names, labels, label_pairs, advice, proposal)
        output.write(report_page(made))
        output.finish()
    if stats is not None:
        with Output(stats) as output:
            output.write(points_json(made))
            output.finish()
    # Printed when all files are written, since `| head` ends the command.
    _print_recommendation(advice, proposal)
    for table in _tables(points, settings, advice, everything=everything):
        report().print(table)
    if not everything:
        report().print("--all prints all that was tried; the report shows it as curves")
    say_error(f"{report_file}: the report, with pairs to label; it contains messages, so its mode is 0600")


_LONG_S = 60.0


def _told(swept: Iterator[Point], asked: int) -> list[Point]:
    """The points; lines on stderr say how many of `asked` are done."""
    points = []
    began = said = time.monotonic()
    for point in swept:
        points.append(point)
        if time.monotonic() - said > 5:
            first, said = said == began, time.monotonic()
            left_s = (said - began) / len(points) * (asked - len(points))
            shorter = "; --rows N tries fewer messages" if first and left_s > _LONG_S else ""
            say_error(f"{len(points):,} of {asked:,} settings tried, about {left_s:.0f} s left{shorter}")
    return points


def _print_recommendation(advice: Advice | None, proposal: str | None) -> None:
    """Print the settings so that they can be copied, and why they are recommended.

    proposal: the profile that the texts speak for; labels say more, so it is printed without labels alone
    """
    lines = []
    if advice is not None:
        lines = [] if advice.yaml is None else ["recommended settings:", *advice.yaml.splitlines()]
        lines += [advice.reason, *advice.lines]
    elif proposal is not None:
        lines = [f"{proposal}. Label pairs in the report to measure both on your messages"]
    for line in lines:
        report().print(line, soft_wrap=True)


def _tables(
    points: Sequence[Point], settings: Settings, advice: Advice | None, *, everything: bool
) -> list[Table]:
    """Without labels one table: similarities down, curves across. With labels a table for each curve: that of
    the settings in force, and the recommended one. A table fits into 80 columns.

    everything: all similarities and curves that were tried
    """
    own = settings.near.similarity
    chosen = advice.point if advice is not None else None
    shown = {*range(points[0].similarity, SIMILARITY_SCALE, _STEP), own}
    shown |= {chosen.similarity} if chosen is not None else set()
    rows = [point for point in points if everything or point.similarity in shown]
    curves: dict[str, list[Point]] = {}
    for point in rows:
        curves.setdefault(point.curve.name, []).append(point)
    if points[0].judged is None:
        return [_drop_table(list(curves.values()), own)]
    return [
        _judged_table(line, own, chosen)
        for line in curves.values()
        if everything or line[0].curve.is_own or (chosen is not None and line[0].curve == chosen.curve)
    ]


def _drop_table(curves: Sequence[Sequence[Point]], own: int) -> Table:
    from rich.text import Text

    title = f"dropped of {curves[0][0].messages:,} messages, by level of near.differences and by profile"
    table = _empty_table(title)
    for line in curves:
        # A name of two curves that do the same: `differences full, profile default`.
        words = [name.split()[-1] for name in line[0].curve.name.split(", ")]
        table.add_column(Text(" =\n".join(words)), justify="right", no_wrap=True)
    for across in zip(*curves, strict=True):
        cells = [share(point.drop_share) for point in across]
        table.add_row(_similarity(across[0], own), *cells)
    table.caption = "* your similarity"
    return table


def _judged_table(line: Sequence[Point], own: int, chosen: Point | None) -> Table:
    curve = line[0].curve
    table = _empty_table(f"{curve.name}{' (your level)' if curve.is_own else ''}")
    for name in ("dropped", "precision", "recall"):
        table.add_column(name, justify="right", no_wrap=True)
    for point in line:
        if point.judged is not None:
            cells = [f"{each.value:.3f}" for each in (point.judged.precision, point.judged.recall)]
            mark = " <" if point == chosen else ""
            table.add_row(_similarity(point, own), share(point.drop_share), cells[0], cells[1] + mark)
    table.caption = "* your similarity" + ("  < recommended" if chosen in line else "")
    return table


def _empty_table(title: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("similarity", justify="right", no_wrap=True)
    return table


def _similarity(point: Point, own: int) -> str:
    from twinsieve.pipeline.tools.tune.sweep import similarity_text

    return similarity_text(point.similarity) + (" *" if point.similarity == own else "  ")
