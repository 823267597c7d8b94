"""`twinsieve generate`."""

from __future__ import annotations

from itertools import islice

import click

from twinsieve.pipeline.commands.options import FILE_NAME
from twinsieve.pipeline.commands.terminal import examples


@click.command(
    "generate",
    epilog=examples(
        "twinsieve generate --messages 1000 -o posts.jsonl.gz",
        "twinsieve generate --messages 200 --truth --seed 7 > posts.jsonl",
    ),
)
@click.option("--messages", default=20_000, type=click.IntRange(0, 10**10), help="Number of posts (20000).")
@click.option("--seed", default=1, type=click.IntRange(0, 2**63 - 1), help="Same seed, same posts (1).")
@click.option("--repeats", default=0.28, type=click.FloatRange(0, 0.9), help="Share of repeats (0.28).")
@click.option("--truth", is_flag=True, help="Add to each post what it was made from.")
@click.option(
    "-o",
    "--output",
    default="-",
    type=FILE_NAME,
    metavar="FILE",
    help="JSON lines, packed if .gz or .zst (stdout).",
)
def command(messages: int, seed: int, repeats: float, truth: bool, output: str) -> None:
    """Generate a stream of microblog posts with reposts, edits, chains, polls and reports."""
    import orjson

    from twinsieve.pipeline.files.format import refuse_endings_of_reports
    from twinsieve.pipeline.files.write import Output, refuse_clashes
    from twinsieve.pipeline.generate.stream import CHUNK, generate

    refuse_clashes([], {"-o": output})
    refuse_endings_of_reports({"-o": output})
    posts = generate(messages, seed, repeats=repeats, truth=truth)
    with Output(output) as out:
        while chunk := list(islice(posts, CHUNK)):
            out.write(b"".join(orjson.dumps(post, option=orjson.OPT_APPEND_NEWLINE) for post in chunk))
        out.finish()
