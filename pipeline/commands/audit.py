"""`twinsieve audit`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import click

from twinsieve.pipeline.basics.printable import beginning, printable
from twinsieve.pipeline.commands.options import FILE_NAME, SettingsFlags, gathered, settings_options
from twinsieve.pipeline.commands.terminal import examples, report, say_error
from twinsieve.pipeline.pages.amounts import share

if TYPE_CHECKING:
    from rich.table import Table

    from twinsieve.pipeline.audit.apart import Reasons
    from twinsieve.pipeline.audit.drops import Drop
    from twinsieve.pipeline.audit.findings import Findings
    from twinsieve.pipeline.audit.rate import Rate
    from twinsieve.pipeline.audit.run_stats import RunStats
    from twinsieve.pipeline.audit.table import DropWriter
    from twinsieve.pipeline.audit.topic import TopicDrops
    from twinsieve.pipeline.audit.totals import Cluster, Totals
    from twinsieve.pipeline.files.write import Output

    _Read = Callable[[], Iterator[Drop]]

_SHOWN_CHARACTERS = 120
_EXAMPLES = 3
_POSTS_MODE = 0o600
_ON_KAFKA = "twinsieve.pipeline.commands.kafka.topic_drops"
"""Imported when it is needed: the commands for Kafka stand above the others."""


class Reports(NamedTuple):
    """Where to write; None: not written. csv, parquet: the drops; html: the page"""

    csv: str | None
    parquet: str | None
    html: str | None

    def by_flag(self) -> dict[str, str | None]:
        """Name of each file, by its flag."""
        return {"--csv": self.csv, "--parquet": self.parquet, "--html": self.html}


class TopicFlags(NamedTuple):
    """Which drops of a topic to read; None if not given."""

    since: str | None
    limit: int | None


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
    from twinsieve.pipeline.audit.choice import Choice
    from twinsieve.pipeline.audit.findings import Sizes, findings_json, findings_of
    from twinsieve.pipeline.audit.page import PARTS, page, page_sizes
    from twinsieve.pipeline.audit.run_stats import check_same_run
    from twinsieve.pipeline.files.endings import refuse_empty_names
    from twinsieve.pipeline.files.source import STDIN, is_stream
    from twinsieve.pipeline.files.write import STDOUT, place_all, refuse_clashes
    from twinsieve.stages.errors import UsageError, shown

    choice = Choice(position, id_, leader, search)
    if file is None:
        _refuse_on_kafka(flags, kept_apart, stats)
    elif topic.since is not None or topic.limit is not None or flags.any_given:
        raise click.UsageError("FILE is read without settings, --since and --limit; these are for Kafka")
    inputs = [name for name in (file, kept_apart, stats) if name is not None]
    refuse_empty_names(inputs)
    written = reports.by_flag()
    refuse_clashes(inputs, ({"--json": STDOUT} if as_json else {}) | written, config=flags.config)
    _refuse_endings(reports)
    lists = not choice.is_open and not as_json and not any(written.values())
    summarises = not any(written.values()) and not lists
    counts = summarises or as_json or reports.html is not None
    if file is not None and counts and is_stream(file):
        named = "stdin" if file == STDIN else shown(file)
        raise UsageError(f"{named} is read twice; name a file")
    for flag, name in {"--kept-apart": kept_apart, "--stats": stats}.items():
        if name is not None and not counts:
            raise click.UsageError(
                f"{flag} adds to the summary, --html and --json; ask for one of these, or leave it out"
            )

    with ExitStack() as stack:
        source = stack.enter_context(_source(file, topic, flags, stats))

        def chosen() -> Iterator[Drop]:
            return (drop for drop in source.read() if choice.takes(drop))

        if lists:
            found_any = _list(chosen(), top, source)
            if not found_any and (position is not None or id_ is not None):
                say_error(
                    f"{shown(source.name)}: has no such drop: the message was kept, not readable, or not "
                    "seen; --leader lists what was dropped for a kept one"
                )
                return 1
            return 0
        outputs = {flag: stack.enter_context(_output(flag, name)) for flag, name in written.items() if name}
        writers = [stack.enter_context(writer) for writer in _writers(outputs)]
        reasons = _reasons(kept_apart)
        count = None
        if counts:
            sizes = Sizes(top) if reports.html is None else page_sizes(top)
            if as_json:
                sizes = replace(sizes, clusters=top, parts=PARTS)
            found = replace(findings_of(chosen, sizes, reasons), run=source.run)
            if stats is not None and source.run is not None and choice.is_open:
                check_same_run(source.run, found.drops, stats)
            if source.run is not None and not choice.is_open:
                found = replace(found, run=replace(source.run, rows=None))
            if not as_json or reports.html is not None:
                found = source.with_leaders(found)
            count = found.drops
            if as_json:
                click.echo(findings_json(found), nl=False)
            elif summarises:
                _summarise(found, source.missing)
            if "--html" in outputs:
                name = None if kept_apart is None else shown(kept_apart)
                html = page(found, name=shown(source.name), asked=str(choice), kept_apart=name)
                outputs["--html"].write(html)
        if writers:
            count = _write(chosen(), writers)
        for output in outputs.values():
            output.sync()
        place_all(list(outputs.values()))
    for flag, name in written.items():
        if name is not None and not outputs[flag].is_stream:
            say_error(f"{name}: {count:,} drops; it contains messages, so its mode is 0600")
    return 0


class _FileDrops:
    """The drops of a file. `TopicDrops` has the same methods; in a file the texts of leaders are there."""

    missing = "(not in the file)"

    def __init__(self, name: str, run: RunStats | None) -> None:
        self.name = name
        self.run = run

    def read(self) -> Iterator[Drop]:
        from twinsieve.pipeline.audit.drops import read_drops

        return read_drops(self.name)

    def with_leaders(self, found: Findings) -> Findings:
        return found

    def listed(self, drops: list[Drop]) -> list[Drop]:
        return drops


@contextmanager
def _source(
    file: str | None, topic: TopicFlags, flags: SettingsFlags, stats: str | None
) -> Iterator[_FileDrops | TopicDrops]:
    """What to read the drops from, as long as the context lasts."""
    from twinsieve.pipeline.audit.run_stats import read_run_stats

    if file is not None:
        yield _FileDrops(file, None if stats is None else read_run_stats(stats))
        return
    opened = import_module(_ON_KAFKA).topic_drops(flags, topic.since, topic.limit)
    with opened as drops:
        yield drops


def _refuse_on_kafka(flags: SettingsFlags, kept_apart: str | None, stats: str | None) -> None:
    """raises: click.UsageError"""
    if not flags.names_app:
        raise click.UsageError("name FILE, or an app on Kafka by its settings: -c FILE")
    for flag, name in {"--kept-apart": kept_apart, "--stats": stats}.items():
        if name is not None:
            raise click.UsageError(f"{flag} goes with a file of duplicates, not with a topic")


def _refuse_endings(reports: Reports) -> None:
    """Refuse names that promise another content. raises: UsageError"""
    from twinsieve.pipeline.files.endings import refuse_other_endings, refuse_packed_endings

    refuse_other_endings("CSV", (".csv",), {"--csv": reports.csv})
    refuse_other_endings("Parquet", (".parquet", ".pq"), {"--parquet": reports.parquet})
    refuse_other_endings("HTML", (".html",), {"--html": reports.html})
    refuse_packed_endings({"--parquet": reports.parquet, "--html": reports.html})


def _output(flag: str, name: str) -> Output:
    from twinsieve.pipeline.files.write import Output

    return Output(name, mode=_POSTS_MODE, packed=flag == "--csv")


def _writers(outputs: dict[str, Output]) -> Iterator[DropWriter]:
    from twinsieve.pipeline.audit.table import CsvDrops, ParquetDrops

    if "--csv" in outputs:
        yield CsvDrops(outputs["--csv"])
    if "--parquet" in outputs:
        yield ParquetDrops(outputs["--parquet"])


def _write(drops: Iterator[Drop], writers: list[DropWriter]) -> int:
    """Write all drops to each writer. returns: their number"""
    count = 0
    for count, drop in enumerate(drops, start=1):  # noqa: B007
        for writer in writers:
            writer.write(drop)
    for writer in writers:
        writer.end()
    return count


def _reasons(kept_apart: str | None) -> Reasons | None:
    from twinsieve.pipeline.audit.apart import read_apart, reasons_of

    if kept_apart is None:
        return None
    return reasons_of(read_apart(kept_apart), _EXAMPLES, 1_000)


def _list(drops: Iterator[Drop], top: int, source: _FileDrops | TopicDrops) -> bool:
    """Print the drops, `top` at most, and their number. returns: whether there are any"""
    found = 0
    shown: list[Drop] = []
    for drop in drops:
        found += 1
        if found <= top:
            shown.append(drop.cut(_SHOWN_CHARACTERS + 1))
    for drop in source.listed(shown):
        _print_drop(drop)
    click.echo(f"{found:,} drops; {min(found, top):,} shown")
    return found > 0


def _print_drop(drop: Drop) -> None:
    flags = f" ({', '.join(drop.flags)})" if drop.flags else ""
    leader = f"to {drop.leader}" if drop.leader is not None else "to a message that only the filter knows"
    click.echo(printable(f"{drop.message}: {drop.degree} {leader}{flags}"))
    if drop.leader is not None and drop.leader.text is not None:
        click.echo(printable(f"  kept     {_shortened(drop.leader.text)}"))
    click.echo(printable(f"  dropped  {_shortened(drop.message.text or '')}"))


def _summarise(found: Findings, missing: str) -> None:
    """missing: stands for the text of a leader that is not known"""
    console = report()
    console.print(found.sentence, soft_wrap=True)
    if found.run is not None:
        console.print(printable(_run_line(found.run)), soft_wrap=True)
    if found.drops:
        console.print(_counts(found.totals))
    if found.rate.rows:
        console.print(_rate(found.rate))
    if found.clusters:
        console.print(_clusters(found.clusters, found.totals, missing))
    if found.reasons is not None:
        console.print(_reasons_table(found.reasons))
        for reason, rows in found.reasons.examples.items():
            for row in rows[:1]:
                says = "" if row.says is None else f": {row.other_says} → {row.says}"
                click.echo(printable(f"{row.message}, {reason}{says}"))
                click.echo(printable(f"  earlier  {_shortened(row.other.text or '(not in the file)')}"))
                click.echo(printable(f"  kept     {_shortened(row.message.text or '')}"))


def _run_line(run: RunStats) -> str:
    """What made the drops, in one line."""
    settings = ", ".join(f"{key} {value}" for key, value in run.settings.items())
    version = f"; twinsieve {run.version}" if run.version else ""
    return f"inputs: {', '.join(run.inputs)}; settings: {settings}{version}"


def _counts(totals: Totals) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"{totals.drops:,} dropped"), title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    rows = [*totals.stages.most_common(), *totals.bands(), *totals.flags.most_common()]
    for name, count in rows:
        table.add_row(Text(printable(name)), f"{count:,}")
    return table


def _rate(rate: Rate) -> Table:
    from rich.table import Table
    from rich.text import Text

    from twinsieve.pipeline.audit.table import moment

    first, last = rate.rows[0].first, rate.rows[-1].last
    table = Table(title=Text(f"rows {first:,} to {last:,}, first to last drop"), title_justify="left")
    for name in ("from row", "to row", "drops", "share"):
        table.add_column(name, justify="right")
    timed = any(part.from_ms is not None for part in rate.rows)
    if timed:
        table.add_column("first time, UTC")
    for part in rate.rows:
        cells = [f"{part.first:,}", f"{part.last:,}", f"{part.drops:,}", share(part.share)]
        time = "" if part.from_ms is None else f"{moment(part.from_ms):%Y-%m-%d %H:%M}"
        table.add_row(*cells, *([time] if timed else []))
    return table


def _clusters(clusters: list[Cluster], totals: Totals, missing: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    title = f"{len(totals.leaders):,} kept messages have drops; those with the most"
    table = Table(title=Text(title), title_justify="left", show_lines=True)
    for name in ("drops", "share"):
        table.add_column(name, justify="right")
    for name in ("kept message", "its text, and its least similar drop"):
        table.add_column(name, overflow="fold")
    for cluster in clusters:
        texts = [cluster.leader.text or missing, cluster.samples[0].message.text or ""]
        table.add_row(
            f"{cluster.drops:,}",
            share(cluster.drops / totals.drops),
            Text(printable(str(cluster.leader))),
            Text("\n".join(printable(_shortened(text)) for text in texts)),
        )
    return table


def _reasons_table(reasons: Reasons) -> Table:
    from rich.table import Table
    from rich.text import Text

    from twinsieve.pipeline.messages.columns import MEANINGS

    title = f"{reasons.counts.total():,} kept apart"
    table = Table(title=Text(title), title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    for reason, count in reasons.counts.most_common():
        table.add_row(Text(printable(reason)), f"{count:,}", MEANINGS.get(reason, ""))
    return table


def _shortened(text: str) -> str:
    return beginning(text, _SHOWN_CHARACTERS)
