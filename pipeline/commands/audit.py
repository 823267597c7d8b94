"""`twinsieve audit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.commands.options import FILE_NAME
from twinsieve.pipeline.commands.terminal import examples, report

if TYPE_CHECKING:
    from rich.table import Table

    from twinsieve.pipeline.audit.drops import Drop
    from twinsieve.pipeline.audit.totals import Cluster, Totals

_SHOWN_CHARACTERS = 120


@click.command(
    "audit",
    epilog=examples(
        "twinsieve audit dropped.jsonl",
        "twinsieve audit dropped.jsonl --leader 6",
        'twinsieve audit dropped.jsonl --search "ferry" --top 5',
    ),
)
@click.argument("file", type=FILE_NAME, metavar="FILE")
@click.option(
    "--top", default=20, type=click.IntRange(1, 10_000), metavar="N", help="Show at most N lines (20)."
)
@click.option("--leader", metavar="N|ID", help="List what was dropped for this kept message.")
@click.option("--search", metavar="TEXT", help="List drops with this in their own text or their leader's.")
def command(file: str, top: int, leader: str | None, search: str | None) -> None:
    """Show what FILE, written by `dedup --duplicates`, says was dropped.

    First the counts by stage and similarity, then the kept messages for which most others were dropped, each
    with the drop that is least alike to it. --leader takes the number of a row, or an id. --search finds
    equal characters, in upper or lower case.
    """
    from twinsieve.pipeline.audit.drops import read_drops
    from twinsieve.pipeline.audit.totals import Totals, biggest
    from twinsieve.pipeline.files.source import STDIN, is_stream
    from twinsieve.stages.errors import UsageError, shown

    if leader is not None or search is not None:
        found = 0
        for drop in read_drops(file):
            if _is_asked_for(drop, leader, search):
                found += 1
                if found <= top:
                    _print_drop(drop)
        click.echo(f"{found:,} drops; {min(found, top):,} shown")
        return
    if is_stream(file):
        named = "stdin" if file == STDIN else shown(file)
        raise UsageError(f"{named} is read twice; name a file")
    totals = Totals()
    for drop in read_drops(file):
        totals.add(drop)
    console = report()
    console.print(_counts(totals))
    if totals.sizes:
        console.print(_clusters(biggest(read_drops(file), totals, top), totals))


def _is_asked_for(drop: Drop, leader: str | None, search: str | None) -> bool:
    if leader is not None and (
        drop.leader is None or leader not in (str(drop.leader.position), drop.leader.id)
    ):
        return False
    if search is None:
        return True
    texts = [drop.message.text, drop.leader.text if drop.leader is not None else None]
    return any(search.casefold() in text.casefold() for text in texts if text is not None)


def _print_drop(drop: Drop) -> None:
    flags = f" ({', '.join(drop.flags)})" if drop.flags else ""
    leader = f"to {drop.leader}" if drop.leader is not None else "to a message that only the filter knows"
    click.echo(printable(f"{drop.message}: {drop.degree} {leader}{flags}"))
    if drop.leader is not None and drop.leader.text is not None:
        click.echo(printable(f"  kept     {_shortened(drop.leader.text)}"))
    click.echo(printable(f"  dropped  {_shortened(drop.message.text or '')}"))


def _counts(totals: Totals) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"{totals.drops:,} dropped"), title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    rows = list(totals.stages.most_common())
    rows += [(f"near, from {band / 20:g}", count) for band, count in sorted(totals.bands.items())]
    rows += list(totals.flags.most_common())
    for name, count in rows:
        table.add_row(Text(printable(name)), f"{count:,}")
    return table


def _clusters(clusters: list[Cluster], totals: Totals) -> Table:
    from rich.table import Table
    from rich.text import Text

    title = f"{len(totals.sizes):,} kept messages lead; those with most drops"
    table = Table(title=Text(title), title_justify="left", show_lines=True)
    for name in ("drops", "share"):
        table.add_column(name, justify="right")
    for name in ("kept message", "text, and the drop least alike to it"):
        table.add_column(name, overflow="fold")
    for cluster in clusters:
        texts = [cluster.leader.text or "(not in the file)", cluster.sample.message.text or ""]
        table.add_row(
            f"{cluster.drops:,}",
            f"{cluster.drops / totals.drops:.1%}",
            Text(printable(str(cluster.leader))),
            Text("\n".join(printable(_shortened(text)) for text in texts)),
        )
    return table


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
