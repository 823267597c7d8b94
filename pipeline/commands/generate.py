"""`twinsieve generate`."""

from __future__ import annotations

from itertools import islice

import click

from twinsieve.pipeline.commands.options import FILE_NAME
from twinsieve.pipeline.commands.terminal import examples
from twinsieve.pipeline.tools.generate.languages import LANGUAGES

_ROWS_A_WRITE = 1_024


@click.command(
    "generate",
    epilog=examples(
        "twinsieve generate --messages 1000 -o posts.jsonl.gz",
        "twinsieve generate --messages 200 --truth --seed 7 > posts.jsonl",
        "twinsieve generate --language en --truth -o posts.jsonl",
    ),
)
@click.option(
    "--messages", default=20_000, type=click.IntRange(0, 10**10), help="Number of messages (20000)."
)
@click.option(
    "--seed", default=1, type=click.IntRange(0, 2**63 - 1), help="The same seed gives the same messages (1)."
)
@click.option(
    "--repeats",
    default=0.28,
    type=click.FloatRange(0, 0.9),
    help="Share of messages that repeat an earlier one (0.28).",
)
@click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    help="Posts in one language, as on Twitter (mainly Chinese posts, as on Weibo).",
)
@click.option("--truth", is_flag=True, help="Add to each message its kind and the message it was made from.")
@click.option(
    "-o",
    "--output",
    default="-",
    type=FILE_NAME,
    metavar="FILE",
    help="JSON lines, compressed if the name ends in .gz or .zst (stdout).",
)
def command(
    messages: int,
    seed: int,
    repeats: float,
    language: str | None,
    truth: bool,
    output: str,
) -> None:
    """Generate a stream of microblog posts with reposts, edits, chains, polls and reports."""
    import orjson

    from twinsieve.pipeline.files.endings import refuse_endings_of_reports
    from twinsieve.pipeline.files.write import Output, refuse_clashes
    from twinsieve.pipeline.tools.generate.stream import generate

    refuse_clashes([], {"-o": output})
    refuse_endings_of_reports({"-o": output})
    rows = generate(messages, seed, repeats=repeats, truth=truth, language=language)
    with Output(output) as out:
        while chunk := list(islice(rows, _ROWS_A_WRITE)):
            out.write(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in chunk))
        out.finish()
