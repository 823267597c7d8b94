"""`twinsieve train-stop-words`."""

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
    "train-stop-words",
    epilog=examples(
        "twinsieve train-stop-words posts.jsonl -o stop.txt --share .3 --min-texts 20",
        "twinsieve dedup posts.jsonl --set features.kind=keywords "
        "--set features.stop_words_file=stop.txt -o a.jsonl",
    ),
)
@click.argument("inputs", nargs=-1, required=True, type=FILE_NAME, metavar="INPUT...")
@settings_options
@click.option("-o", "--output", required=True, type=FILE_NAME, help="The result: one word a line.")
@format_options("Format of INPUTs (by file name).")
@click.option(
    "--share",
    default=0.5,
    type=click.FloatRange(0, 1, min_open=True),
    help="A word is a stop word if at least this share of the texts has it (0.5).",
)
@click.option(
    "--min-texts",
    default=100,
    type=click.IntRange(1),
    help="Refuse to learn from fewer texts (100).",
)
def command(
    inputs: tuple[str, ...],
    output: str,
    spelt: FormatFlags,
    share: float,
    min_texts: int,
    flags: SettingsFlags,
) -> None:
    """Find the words that stand in most texts of INPUTs; `features.stop_words_file` takes the result."""
    from twinsieve.pipeline.commands.learning import Corpus, with_settings
    from twinsieve.pipeline.files.write import Output

    # Of the settings of features those count that say what a word is.
    pairs = with_settings(flags, kind="keywords", weights="tf", idf_file="", stop_words_file="")
    corpus = Corpus(
        inputs,
        output,
        spelt,
        flags._replace(pairs=pairs),
        holds="lines of words",
        endings=(".txt", ".text"),
    )
    learned = corpus.scheme.train_stop_words(corpus, share, min_texts)
    with Output(output) as out:
        out.write("".join(f"{word}\n" for word in learned).encode())
        out.finish()
    say_error(f"{output}: {len(learned):,} words; {corpus.unread:,} rows could not be read")
