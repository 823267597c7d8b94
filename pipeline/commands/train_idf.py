"""`twinsieve train-idf`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.commands.options import (
    FILE_NAME,
    delimiter_option,
    encoding_option,
    file_settings_from,
    format_option,
    settings_options,
)
from twinsieve.pipeline.commands.terminal import examples, say_error

if TYPE_CHECKING:
    from twinsieve.pipeline.settings.model import Settings
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
@format_option("Format of INPUTs (by file name).")
@delimiter_option
@encoding_option
@click.option("--min-documents", default=2, type=click.IntRange(1), help="Leave rarer features out (2).")
def command(
    inputs: tuple[str, ...],
    output: str,
    form: str | None,
    delimiter: str | None,
    encoding: str | None,
    min_documents: int,
    config: str | None,
    pairs: tuple[str, ...],
    **given: str | None,
) -> None:
    """Learn how rare each feature is in INPUTs; `features.idf_file` takes the result."""
    from twinsieve.pipeline.files.format import refuse_other_endings
    from twinsieve.pipeline.files.names import expand
    from twinsieve.pipeline.files.write import Output, inputs_of, outputs_of, refuse_clashes, settings_of
    from twinsieve.pipeline.settings.stage_config import scheme_of

    # Weighing by IDF is what the result is for, so it cannot be asked for while there is none.
    others = [pair for pair in pairs if not pair.startswith(("features.weights=", "features.idf_file="))]
    settings = file_settings_from(config, (*others, "features.weights=tf", "features.idf_file="), **given)
    names, _ = expand(list(inputs), [output])
    refuse_clashes(inputs_of(names) + settings_of(config, settings), outputs_of({"-o": output}))
    refuse_other_endings("lines of features and weights", ("text", "tsv"), {"-o": output})
    scheme = scheme_of(settings)
    unread = [0]
    learned = scheme.train_idf(
        _bodies(names, form, delimiter, encoding, settings, scheme.bodies, unread), min_documents
    )
    with Output(output) as out:
        out.write("".join(f"{feature}\t{idf}\n" for feature, idf in learned).encode())
        out.finish()
    say_error(f"{output}: {len(learned):,} features; {unread[0]:,} rows could not be read")


def _bodies(
    names: list[str],
    form: str | None,
    delimiter: str | None,
    encoding: str | None,
    settings: Settings,
    bodies: Callable[[list[str]], Bodies],
    unread: list[int],
) -> Iterator[Bodies]:
    from twinsieve.pipeline.files.format import format_of
    from twinsieve.pipeline.files.messages import InputReader
    from twinsieve.pipeline.files.source import InputSource

    reader = InputReader(settings, *format_of(names, form, settings, delimiter, encoding))
    for name in names:
        with InputSource(name) as source:
            for chunk in reader.chunks(source):
                unread[0] += len(chunk.columns.unreadable)
                yield bodies(chunk.columns.texts)
