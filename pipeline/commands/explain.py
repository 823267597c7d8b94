"""`twinsieve explain`."""

from __future__ import annotations

import click

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.commands.explained import print_explanation
from twinsieve.pipeline.commands.options import (
    FILE_NAME,
    FormatFlags,
    SettingsFlags,
    format_options,
    settings_options,
)
from twinsieve.pipeline.commands.terminal import examples, report


@click.command(
    "explain",
    epilog=examples(
        'twinsieve explain "The ferry leaves at nine today." "The ferry leaves at ten today."',
        "twinsieve explain --input posts.jsonl --id p0000000001 --id p0000000002",
        "twinsieve explain --input posts.txt --position 1 --position 3",
        'twinsieve explain --features "The ferry leaves at nine today." --set features.kind=keywords',
    ),
)
@click.argument("texts", nargs=-1, metavar="[EARLIER [LATER]]")
@settings_options
@click.option(
    "--input",
    "source",
    type=FILE_NAME,
    metavar="FILE",
    help="Read the two texts from this file; name them by --id or --position, twice.",
)
@click.option("--id", "ids", multiple=True, metavar="ID", help="Id of a message in --input.")
@click.option(
    "--position",
    "positions",
    multiple=True,
    metavar="N",
    type=click.IntRange(1),
    help="Row number of a message in --input, from 1.",
)
@click.option(
    "--features",
    is_flag=True,
    help="Show how the SimHash of one or two texts is computed: features, weights, hashes, sums, bits.",
)
@format_options("Format of --input (by file name).")
def command(
    texts: tuple[str, ...],
    source: str | None,
    ids: tuple[str, ...],
    positions: tuple[int, ...],
    features: bool,
    spelt: FormatFlags,
    flags: SettingsFlags,
) -> None:
    """Show what each step finds for two texts: is LATER dropped if EARLIER was kept?"""
    from twinsieve.pipeline.commands.warm_up import loading
    from twinsieve.pipeline.files.input_reader import InputReader
    from twinsieve.pipeline.why.explain import (
        Message,
        explain,
        explain_features,
        messages_by_id,
        messages_by_position,
    )

    settings = flags.settings(on_files=True)
    if source is not None:
        if (len(ids), len(positions)) not in ((2, 0), (0, 2)) or texts:
            raise click.UsageError(
                "--input needs --id or --position twice and no texts, as in --input FILE --id 1 --id 2"
            )
        reader = InputReader(settings, spelt.format_of([source], settings))
        if ids:
            messages = messages_by_id(source, list(ids), reader)
        else:
            messages = messages_by_position(source, list(positions), reader)
    elif len(texts) not in ((1, 2) if features else (2,)) or ids or positions:
        raise click.UsageError("give two texts, or --input FILE and --id or --position twice")
    else:
        messages = [Message(text) for text in texts]
    if features:
        with loading():
            lines = explain_features([message.text for message in messages], settings)
        for line in lines:
            click.echo(printable(line))
        return
    earlier, later = messages
    with loading():
        explanation = explain(earlier, later, settings)
    print_explanation(report(), explanation)
