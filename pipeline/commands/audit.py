"""`twinsieve audit`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import click

from twinsieve.pipeline.basics.printable import beginning, printable
from twinsieve.pipeline.basics.shown_amounts import share
from twinsieve.pipeline.commands.options import FILE_NAME, SettingsFlags, gathered, settings_options
from twinsieve.pipeline.commands.terminal import examples, report, say_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from twinsieve.pipeline.tools.audit.apart import Reasons
    from twinsieve.pipeline.tools.audit.run_stats import RunStats
    from twinsieve.pipeline.tools.audit.store import DropTable
    from twinsieve.pipeline.why.drops import Drop

_SHOWN_CHARACTERS = 120
_EXAMPLES = 3
_PARTS = 12
_ON_KAFKA = "twinsieve.pipeline.commands.kafka.topic_drops"
"""Imported when it is needed: the commands for Kafka stand above the others."""


class Reports(NamedTuple):
    """Where to write; None: not written. csv, parquet: the drops; html: the page"""

    csv: str | None
    parquet: str | None
    html: str | None


class TopicFlags(NamedTuple):
    """Which drops of a topic to read; None if not given."""

    since: str | None
    limit: int | None


class _Source(NamedTuple):
    """Where drops come from.

    read: gives them; tell: adds the texts of leaders; run: what made them, if that is known
    missing: stands for the text of a leader that is not known
    """

    name: str
    read: Callable[[], Iterable[Drop]]
    tell: Callable[[list[Drop]], list[Drop]]
    run: RunStats | None
    missing: str


@click.command(
    "audit",
    epilog=examples(
        "twinsieve audit dropped.jsonl",
        "twinsieve audit dropped.jsonl --leader 6",
        'twinsieve audit dropped.jsonl --search "ferry" --top 5',
        "twinsieve audit dropped.jsonl --position posts.jsonl:17",
        "twinsieve audit dropped.jsonl --kept-apart apart.jsonl --html drops.html",
        "twinsieve audit dropped.jsonl --csv drops.csv --json",
        "twinsieve audit -c kafka.yaml --since 24h --leader 'posts[0]@17'",
    ),
)
@click.argument("file", type=FILE_NAME, metavar="[FILE]", required=False)
@click.option(
    "--top", default=20, type=click.IntRange(1, 10_000), metavar="N", help="Show at most N entries (20)."
)
@click.option("--leader", metavar="N|ID", help="Only the drops of this kept message.")
@click.option(
    "--search",
    metavar="TEXT",
    help="Only drops with TEXT in their text or their kept message's.",
)
@click.option("--position", metavar="N|INPUT:LINE", help="Only the drop at this position.")
@click.option("--id", "id_", metavar="ID", help="Only drops with this id.")
@click.option(
    "--kept-apart", type=FILE_NAME, help="What dedup --kept-apart wrote: adds the reasons, with examples."
)
@click.option(
    "--stats", type=FILE_NAME, help="What dedup --stats wrote in the same run: adds its rows and settings."
)
@gathered(
    "reports",
    Reports,
    click.option("--csv", type=FILE_NAME, help="Write these drops as CSV; for spreadsheets."),
    click.option("--parquet", type=FILE_NAME, help="Write these drops as Parquet; for programs."),
    click.option("--html", type=FILE_NAME, help="Write a report: one HTML page that needs no network."),
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON, without texts.")
@gathered(
    "topic",
    TopicFlags,
    click.option("--since", metavar="24h|TIME", help="On Kafka, only drops from this time on."),
    click.option(
        "--limit",
        type=click.IntRange(1),
        metavar="N",
        help="On Kafka, only about the N newest drops (100000).",
    ),
)
@settings_options
def command(
    file: str | None,
    top: int,
    leader: str | None,
    search: str | None,
    position: str | None,
    id_: str | None,
    kept_apart: str | None,
    stats: str | None,
    reports: Reports,
    topic: TopicFlags,
    flags: SettingsFlags,
    as_json: bool,
) -> int:
    """Show which messages were dropped: in FILE, which `dedup --duplicates` wrote, or by an app on Kafka.

    Without FILE, audit reads the duplicates topic of the app whose settings -c names, and fetches the texts
    of kept messages from the input if they are still there.

    The summary counts the drops by stage and similarity, shows the share of dropped rows over the run, and
    lists the kept messages with the most drops, each with its least similar drop. --leader takes the number
    of a row, or an id. --search ignores upper and lower case. The files that --csv, --parquet and --html
    write contain messages, so their mode is 0600. The exit code is 1 if there is no drop with this --position
    or --id.
    """
    from twinsieve.pipeline.files.endings import (
        refuse_empty_names,
        refuse_other_endings,
        refuse_packed_endings,
    )
    from twinsieve.pipeline.files.write import STDOUT, Output, place_all, refuse_clashes
    from twinsieve.pipeline.pages.extra import require_reports
    from twinsieve.pipeline.tools.audit.apart import read_apart, reasons_of
    from twinsieve.pipeline.tools.audit.choice import Choice
    from twinsieve.pipeline.tools.audit.drop_table import write_csv, write_parquet
    from twinsieve.pipeline.tools.audit.findings import findings_json
    from twinsieve.pipeline.tools.audit.run_stats import check_same_run
    from twinsieve.pipeline.tools.audit.store import drop_table
    from twinsieve.stages.errors import shown

    choice = Choice(position, id_, leader, search)
    of_file = {"--kept-apart": kept_apart, "--stats": stats}
    if file is not None and (topic != TopicFlags(None, None) or flags.any_given):
        raise click.UsageError("FILE is read without settings, --since and --limit; these are for Kafka")
    if file is None and not flags.names_app:
        raise click.UsageError("name FILE, or an app on Kafka by its settings: -c FILE")
    inputs = [name for name in (file, kept_apart, stats) if name is not None]
    refuse_empty_names(inputs)
    written = {f"--{kind}": name for kind, name in reports._asdict().items()}
    refuse_clashes(inputs, ({"--json": STDOUT} if as_json else {}) | written, config=flags.config)
    for kind, *endings in (("CSV", ".csv"), ("Parquet", ".parquet", ".pq"), ("HTML", ".html")):
        refuse_other_endings(kind, tuple(endings), {f"--{kind.lower()}": written[f"--{kind.lower()}"]})
    refuse_packed_endings({"--parquet": reports.parquet, "--html": reports.html})
    lists = not choice.is_open and not as_json and not any(written.values())
    summarises = not lists and not as_json and not any(written.values())
    for flag, name in of_file.items():
        if name is not None and file is None:
            raise click.UsageError(f"{flag} goes with a file of duplicates, not with a topic")
        if name is not None and not (summarises or as_json or reports.html is not None):
            raise click.UsageError(
                f"{flag} adds to the summary, --html and --json; ask for one of these, or leave it out"
            )
    require_reports("audit")

    with ExitStack() as stack:
        source = stack.enter_context(_source(file, topic, flags, stats))
        outputs = {
            flag: stack.enter_context(Output(name, mode=0o600, packed=flag == "--csv"))
            for flag, name in written.items()
            if name is not None
        }
        drops = stack.enter_context(drop_table(drop for drop in source.read() if choice.takes(drop)))
        if lists:
            _list(drops, top, source)
            if not drops.drops and (position is not None or id_ is not None):
                say_error(
                    f"{shown(source.name)}: has no such drop: the message was kept, not readable, or not "
                    "seen; --leader lists what was dropped for a kept one"
                )
                return 1
            return 0
        reasons = None if kept_apart is None else reasons_of(read_apart(kept_apart), _EXAMPLES, 1_000)
        run = source.run
        if run is not None and stats is not None and choice.is_open:
            check_same_run(run, drops.drops, stats)
        if run is not None and not choice.is_open:
            run = replace(run, rows=None)
        if as_json:
            click.echo(findings_json(drops, top, reasons, run), nl=False)
        if summarises:
            _summarise(drops, top, source, reasons, run)
        for flag, output in outputs.items():
            if flag == "--csv":
                write_csv(drops, output)
            elif flag == "--parquet":
                write_parquet(drops, output)
            else:
                from twinsieve.pipeline.tools.audit.page import page

                html = page(
                    drops,
                    top=top,
                    tell=source.tell,
                    name=shown(source.name),
                    asked=str(choice),
                    kept_apart=None if kept_apart is None else shown(kept_apart),
                    reasons=reasons,
                    run=run,
                )
                output.write(html)
            output.sync()
        place_all(list(outputs.values()))
    for flag, output in outputs.items():
        if not output.is_stream:
            count = f"{drops.drops:,} drops"
            say_error(f"{written[flag]}: {count}; it contains messages, so its mode is 0600")
    return 0


_EMPTY = "(empty text)"


@contextmanager
def _source(
    file: str | None, topic: TopicFlags, flags: SettingsFlags, stats: str | None
) -> Iterator[_Source]:
    """What to read the drops from, as long as the context lasts."""
    from twinsieve.pipeline.settings.show import deciding_settings
    from twinsieve.pipeline.tools.audit.run_stats import RunStats, read_run_stats
    from twinsieve.pipeline.why.drops import read_drops

    if file is not None:
        run = None if stats is None else read_run_stats(stats)
        yield _Source(file, lambda: read_drops(file), lambda drops: drops, run, "(not in the file)")
        return
    with import_module(_ON_KAFKA).topic_drops(flags, topic.since, topic.limit) as found:
        settings = found.settings
        run = RunStats(None, None, "", settings.input.topics, deciding_settings(settings))
        yield _Source(found.name, found.read, found.told, run, "(not in the input any more)")


def _list(drops: DropTable, top: int, source: _Source) -> None:
    """Print the first drops, and the number of all."""
    shown = source.tell(drops.beginning(top, _SHOWN_CHARACTERS + 1))
    for drop in shown:
        flags = f" ({', '.join(drop.flags)})" if drop.flags else ""
        leader = f"to {drop.leader}" if drop.leader is not None else "to a message that only the filter knows"
        click.echo(printable(f"{drop.message}: {drop.degree} {leader}{flags}"))
        if drop.leader is not None and drop.leader.text is not None:
            click.echo(printable(f"  kept     {_shortened(drop.leader.text)}"))
        click.echo(printable(f"  dropped  {_shortened(drop.message.text or '')}"))
    click.echo(f"{drops.drops:,} drops; {len(shown):,} shown")


def _summarise(
    drops: DropTable, top: int, source: _Source, reasons: Reasons | None, run: RunStats | None
) -> None:
    from twinsieve.pipeline.messages.verdict_values import MEANINGS
    from twinsieve.pipeline.tools.audit.findings import clusters_of, sentence

    console = report()
    console.print(sentence(drops, run), soft_wrap=True)
    if run is not None:
        settings = ", ".join(f"{key} {value}" for key, value in run.settings.items())
        version = f"; twinsieve {run.version}" if run.version else ""
        line = f"inputs: {', '.join(run.inputs)}; settings: {settings}{version}"
        console.print(printable(line), soft_wrap=True)
    if drops.drops:
        counts = [*drops.stages.items(), *drops.bands, *drops.flags.items()]
        cells: list[tuple[str, ...]] = [(printable(name), f"{count:,}") for name, count in counts]
        console.print(_table(f"{drops.drops:,} dropped", {"": "left", " ": "right"}, cells, head=False))
        if drops.rows is not None:
            console.print(_rate(drops))
        clusters = clusters_of(drops, top, 1, source.tell)
        cells = [
            (
                f"{cluster.drops:,}",
                share(cluster.drops / drops.drops),
                printable(str(cluster.leader)),
                "\n".join(
                    printable(_shortened(text))
                    for text in (
                        source.missing if cluster.leader.text is None else cluster.leader.text or _EMPTY,
                        cluster.samples[0].message.text or "",
                    )
                ),
            )
            for cluster in clusters
        ]
        if cells:
            title = f"{drops.leaders:,} kept messages have drops; those with the most"
            columns = {"drops": "right", "share": "right", "kept message": "left"}
            columns |= {"its text, and its least similar drop": "left"}
            console.print(_table(title, columns, cells, lines=True))
    if reasons is not None:
        cells = [
            (printable(reason), f"{count:,}", MEANINGS.get(reason, ""))
            for reason, count in reasons.counts.most_common()
        ]
        title = f"{reasons.counts.total():,} kept apart"
        console.print(_table(title, {"": "left", " ": "right", "  ": "left"}, cells, head=False))
        for reason, (row, *_) in reasons.examples.items():
            says = "" if row.says is None else f": {row.other_says} → {row.says}"
            click.echo(printable(f"{row.message}, {reason}{says}"))
            click.echo(printable(f"  earlier  {_shortened(row.other.text or '(not in the file)')}"))
            click.echo(printable(f"  kept     {_shortened(row.message.text or '')}"))


def _rate(drops: DropTable) -> Table:
    from twinsieve.pipeline.tools.audit.drop_table import moment

    parts = drops.row_parts(_PARTS)
    columns = dict.fromkeys(("from row", "to row", "drops", "share"), "right")
    if any(part.from_ms is not None for part in parts):
        columns["first time, UTC"] = "left"
    rows = [
        (
            *(f"{part.first:,}", f"{part.last:,}", f"{part.drops:,}", share(part.share)),
            "" if part.from_ms is None else f"{moment(part.from_ms):%Y-%m-%d %H:%M}",
        )[: len(columns)]
        for part in parts
    ]
    return _table(f"rows {drops.first:,} to {drops.last:,}, first to last drop", columns, rows)


def _table(
    title: str,
    columns: dict[str, str],
    rows: Iterable[tuple[str, ...]],
    *,
    head: bool = True,
    lines: bool = False,
) -> Table:
    """A table of cells whose texts act on no terminal. columns: name and side; head: whether names show"""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", show_header=head, show_lines=lines)
    for name, side in columns.items():
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _shortened(text: str) -> str:
    return beginning(text, _SHOWN_CHARACTERS)
