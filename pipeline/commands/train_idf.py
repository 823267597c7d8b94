"""`twinsieve train-idf`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.commands.options import (
    FILE_NAME,
    FormatFlags,
    SettingsFlags,
    format_options,
    settings_options,
)
from twinsieve.pipeline.commands.terminal import examples, say_error

if TYPE_CHECKING:
    from twinsieve.stages.contract import Bodies


@click.command(
    "train-idf",
    epilog=examples(
        "twinsieve train-idf posts.jsonl -o idf.tsv",
        "twinsieve dedup posts.jsonl --set features.weights=tfidf --set features.idf_file=idf.tsv -o a.jsonl",
    ),
)
@click.argument("inputs", nargs=-1, required=True, type=FILE_NAME, metavar="INPUT...")
@settings_options
@click.option("-o", "--output", required=True, type=FILE_NAME, help="Lines `feature<TAB>idf`.")
@format_options("Format of INPUTs (by file name).")
@click.option("--min-documents", default=2, type=click.IntRange(1), help="Leave rarer features out (2).")
def command(
    inputs: tuple[str, ...],
    output: str,
    spelt: FormatFlags,
    min_documents: int,
    flags: SettingsFlags,
) -> None:
    """Learn how rare each feature is in INPUTs; `features.idf_file` takes the result."""
    from twinsieve.pipeline.files.format import refuse_other_endings
    from twinsieve.pipeline.files.messages import InputReader
    from twinsieve.pipeline.files.names import expand
    from twinsieve.pipeline.files.source import InputSource
    from twinsieve.pipeline.files.write import Output, refuse_clashes
    from twinsieve.pipeline.settings.stage_config import scheme_of

    # Weights by IDF need the result of this command, so they are switched off here.
    others = [
        pair for pair in flags.pairs if not pair.startswith(("features.weights=", "features.idf_file="))
    ]
    unweighted = replace(flags, pairs=(*others, "features.weights=tf", "features.idf_file="))
    settings = unweighted.settings(on_files=True)
    names = expand(list(inputs), [output]).names
    refuse_clashes(names, {"-o": output}, settings=settings, config=flags.config)
    refuse_other_endings("lines of features and weights", ("text", "tsv"), {"-o": output})
    scheme = scheme_of(settings)
    reader = InputReader(settings, spelt.dialect_of(names, settings))
    unread = 0

    def bodies() -> Iterator[Bodies]:
        nonlocal unread
        for name in names:
            with InputSource(name) as source:
                for chunk in reader.chunks(source):
                    unread += len(chunk.columns.unreadable) + len(chunk.columns.no_text)
                    yield scheme.bodies(chunk.columns.texts)

    learned = scheme.train_idf(bodies(), min_documents)
    with Output(output) as out:
        out.write("".join(f"{feature}\t{idf}\n" for feature, idf in learned).encode())
        out.finish()
    say_error(f"{output}: {len(learned):,} features; {unread:,} rows could not be read")
