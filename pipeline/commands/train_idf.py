"""`twinsieve train-idf`."""

from __future__ import annotations

import click

from twinsieve.pipeline.commands.options import (
    FILE_NAME,
    FormatFlags,
    SettingsFlags,
    format_options,
    settings_options,
)
from twinsieve.pipeline.commands.terminal import examples, say_error


@click.command(
    "train-idf",
    epilog=examples(
        "twinsieve train-idf posts.jsonl -o idf.tsv",
        "twinsieve dedup posts.jsonl --set features.weights=tfidf --set features.idf_file=idf.tsv -o a.jsonl",
    ),
)
@click.argument("inputs", nargs=-1, required=True, type=FILE_NAME, metavar="INPUT...")
@settings_options
@click.option("-o", "--output", required=True, type=FILE_NAME, help="The result: lines `feature<TAB>idf`.")
@format_options("Format of INPUTs (by file name).")
@click.option(
    "--min-documents", default=2, type=click.IntRange(1), help="Leave out features of fewer texts (2)."
)
def command(
    inputs: tuple[str, ...],
    output: str,
    spelt: FormatFlags,
    min_documents: int,
    flags: SettingsFlags,
) -> None:
    """Learn how rare each feature is in INPUTs; `features.idf_file` takes the result."""
    from twinsieve.pipeline.commands.learning import Corpus, with_settings
    from twinsieve.pipeline.files.write import Output

    # Weights by IDF need the result of this command, so they are switched off here.
    pairs = with_settings(flags, weights="tf", idf_file="")
    corpus = Corpus(
        inputs,
        output,
        spelt,
        flags._replace(pairs=pairs),
        holds="lines of features and weights",
        endings=(".txt", ".text", ".tsv"),
    )
    learned = corpus.scheme.train_idf(corpus, min_documents)
    with Output(output) as out:
        out.write("".join(f"{feature}\t{idf}\n" for feature, idf in learned).encode())
        out.finish()
    say_error(f"{output}: {len(learned):,} features; {corpus.unread:,} rows could not be read")
