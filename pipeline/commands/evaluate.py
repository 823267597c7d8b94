"""`twinsieve evaluate`."""

from __future__ import annotations

from pathlib import Path
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
    from twinsieve.pipeline.files.format import Format
    from twinsieve.pipeline.settings.model import Settings


@click.command(
    "evaluate",
    epilog=examples(
        "twinsieve evaluate posts.jsonl pairs.tsv --at 0.85 --wrong wrong.jsonl",
        "twinsieve evaluate posts.jsonl --judged labels.tsv",
    ),
)
@click.argument("input_", type=FILE_NAME, metavar="INPUT")
@click.argument("pairs_file", type=FILE_NAME, metavar="[PAIRS]", required=False)
@settings_options
@click.option(
    "--at",
    "least_similarity",
    metavar="SHARE",
    help="A pair counts as a duplicate from this similarity on (near.similarity).",
)
@click.option(
    "--rows",
    type=click.IntRange(1),
    help="The number of rows, from the first, that PAIRS covers (up to the last row that it names).",
)
@click.option("--judged", type=FILE_NAME, help="Pairs with labels, in place of PAIRS.")
@click.option("--wrong", type=FILE_NAME, help="Rows that were wrongly kept or dropped, as JSON lines.")
@click.option("--stats", type=FILE_NAME, help="The report as JSON.")
@format_options("Format of INPUT (by file name).")
def command(
    input_: str,
    pairs_file: str | None,
    least_similarity: str | None,
    rows: int | None,
    judged: str | None,
    wrong: str | None,
    stats: str | None,
    spelt: FormatFlags,
    flags: SettingsFlags,
) -> None:
    """Measure the sieve on INPUT against PAIRS, the true pairs of its first rows.

    INPUT is a file in any format that dedup reads. PAIRS is a file, plain or packed, with a header and the
    columns later, earlier, similarity, kind, separated by tabs. It has one line for each two similar rows.

    \b
    later, earlier  ids of two rows (--id-field), each unique in INPUT; earlier comes before later
    similarity      from 0 to 1; a pair of the kind near counts from --at on
    kind            raw: equal texts; body: equal bodies; near: other similar texts

    The ideal result drops a row if an earlier kept row is similar enough. Pairs with an id that is not among
    the first rows of INPUT are ignored, and so are rows after the last one that PAIRS names (see --rows).

    --judged compares with labels: FILE has a header and the columns later_id, earlier_id, label (same,
    different or unsure) and optionally set, separated by tabs. The report of `tune` makes such a file. A row
    without an id is named by its number: row:17. Each pair is judged alone under the settings. The tables
    show precision (pairs labelled unsure are left out) and recall with 95 % intervals, by set and by
    similarity, and the labels of the pairs that were kept apart, by reason.
    """
    from twinsieve.pipeline.commands.warm_up import loading
    from twinsieve.pipeline.files.address import path_here
    from twinsieve.pipeline.files.endings import refuse_endings_of_reports
    from twinsieve.pipeline.files.source import STDIN
    from twinsieve.pipeline.files.write import Output, refuse_clashes
    from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
    from twinsieve.pipeline.settings.values import read_similarity
    from twinsieve.pipeline.tools.evaluate.evaluate import run_evaluate
    from twinsieve.pipeline.tools.evaluate.report_tables import report_tables

    if (pairs_file is None) == (judged is None):
        raise click.UsageError("name PAIRS, or labels with --judged")
    if input_ == STDIN and STDIN in (pairs_file, judged):
        raise click.UsageError("stdin cannot be both INPUT and what it is compared with; name a file for one")
    if judged is not None:
        of_pairs = {"--at": least_similarity, "--rows": rows, "--wrong": wrong, "--stats": stats}
        for flag, value in of_pairs.items():
            if value is not None:
                raise click.UsageError(f"{flag} needs PAIRS; --judged does not use it, so leave it out")
    settings = flags.settings(on_files=True)
    if judged is not None:
        _show_judged(input_, judged, settings, spelt.format_of([input_], settings))
        return
    assert pairs_file is not None
    reports = {"--wrong": wrong, "--stats": stats}
    refuse_clashes([input_, pairs_file], reports, settings=settings, config=flags.config)
    refuse_endings_of_reports(reports)
    try:
        similarity = read_similarity(least_similarity) if least_similarity is not None else None
    except ValueError as error:
        raise click.UsageError(f"--at {error}") from error
    with loading():
        evaluation = run_evaluate(
            path_here("INPUT", input_),
            path_here("PAIRS", pairs_file),
            scheme=scheme_config(settings),
            sieve=sieve_config(settings, ""),
            similarity=similarity,
            rows=rows,
            wrong_path=Path(wrong) if wrong is not None else None,
            text_fields=settings.input.text_field,
            id_field=settings.input.id_field or "id",
            format_=spelt.format_of([input_], settings),
        )
    console = report()
    for table in report_tables(evaluation):
        console.print(table)
    if stats is not None:
        with Output(stats) as output:
            output.write(evaluation.as_json())
            output.finish()
    if wrong is not None:
        say_error(f"{wrong}: what was wrongly kept or dropped")


def _show_judged(input_: str, judged: str, settings: Settings, format_: Format) -> None:
    from twinsieve.pipeline.commands.warm_up import loading
    from twinsieve.pipeline.files.address import path_here
    from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
    from twinsieve.pipeline.tools.evaluate.evaluate import read_named_texts
    from twinsieve.pipeline.tools.evaluate.judged import judge_pairs, judged_tables, names_in, read_judged
    from twinsieve.stages.errors import UsageError, shown

    pairs = read_judged(path_here("--judged", judged))
    if not pairs:
        raise UsageError(
            f"{shown(judged)}: has no labelled pair; write a line for each pair below the header"
        )
    texts = read_named_texts(
        path_here("INPUT", input_),
        names_in(pairs),
        text_fields=settings.input.text_field,
        id_field=settings.input.id_field or "id",
        format_=format_,
    )
    with loading():
        verdicts = judge_pairs(pairs, texts, scheme_config(settings), sieve_config(settings, ""))
    console = report()
    for table in judged_tables(verdicts):
        console.print(table)
