"""`twinsieve status`."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.basics.shown_time import shown_time
from twinsieve.pipeline.commands.kafka.run import settings_to_connect
from twinsieve.pipeline.commands.options import SettingsFlags, settings_options
from twinsieve.pipeline.commands.terminal import examples, report

if TYPE_CHECKING:
    from twinsieve.pipeline.operate.status import Status

_PROBLEM = 3


@click.command(
    "status",
    epilog=examples(
        "twinsieve status -c kafka.yaml",
        "twinsieve status -c kafka.yaml --json --max-waiting 100000",
    ),
)
@settings_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--max-waiting",
    type=click.IntRange(0),
    metavar="N",
    help="Report a problem if more than N messages wait.",
)
def command(as_json: bool, max_waiting: int | None, flags: SettingsFlags) -> int:
    """Show which process judges, which worker reads which partition, and how many messages wait since when.

    It asks only the broker, so it works when no process of this app runs; it joins no group and changes
    nothing. If messages wait, or a transaction is open in the input, it observes for up to ten seconds
    whether that ends. The exit code is 0 if nothing is wrong; 3 if no process judges, a full disk lets it
    judge nothing, a partition has no worker, messages of a partition wait and none comes out, a transaction
    of a producer stays open in the input, an input topic was created again, the topic of the answers of
    shards is missing, a client that is not twinsieve has joined a group of the app, or too many messages
    wait; 1 if the broker does not answer.
    """
    from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
    from twinsieve.pipeline.messages.spelling import to_json
    from twinsieve.pipeline.operate.status import status_of
    from twinsieve.pipeline.service.judging_settings import judging_settings
    from twinsieve.pipeline.service.run import SystemClock
    from twinsieve.pipeline.settings.common import common_settings, differing_keys, settings_id

    settings = settings_to_connect(flags)
    with closing(connect_by_settings(settings)) as broker:
        status = status_of(settings, broker, SystemClock())
        judging = judging_settings(settings.app, broker)
    differing = differing_keys(common_settings(settings), judging)
    if as_json:
        ids = {"settings": settings_id(judging) if judging else None, "other_settings": differing}
        click.echo(to_json(status.as_dict(max_waiting) | ids))
    else:
        _print(status, max_waiting)
        if differing:
            click.echo(printable(f"judged under other settings than this file: {', '.join(differing)}"))
    return _PROBLEM if status.problems(max_waiting) else 0


def _print(status: Status, max_waiting: int | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from twinsieve.pipeline.index.ends import alone_text, late_text

    blocks = "" if status.blocks is None else f", {status.blocks:,} blocks wait for it"
    last = f"; last decision {shown_time(status.decided_ms)}" if status.decided_ms is not None else ""
    standbys = ", ".join(status.standbys) or "nobody"
    click.echo(printable(f"{status.app}: {status.judge or 'nobody'} judges{blocks}{last}"))
    click.echo(printable(f"standing by: {standbys}; workers: {', '.join(status.workers) or 'none'}"))
    if status.key is not None:
        click.echo(f"key: {status.key}")
    if status.shards is not None:
        click.echo(
            printable(f"shards: {', '.join(status.shards.members) or 'none, the index looks up itself'}")
        )
        alone = status.shards.alone
        if alone.count:
            shown = [
                f"{each.first} to {each.end} since {shown_time(each.since_ms)}" for each in alone.segments
            ]
            click.echo(f"{alone_text(alone.count, shown)}: the index looks up in them itself")
        if alone.late:
            late = [(each.shard, each.segments, f"since {shown_time(each.since_ms)}") for each in alone.late]
            click.echo(printable(f"{late_text(late)}: the index looks up in them itself"))
        for group, members in status.shards.others.items():
            click.echo(printable(f"shards of other settings or rules: {', '.join(members)} (group {group})"))
    table = Table(
        "partition", "worker", title=Text(f"{status.waiting:,} messages wait"), title_justify="left"
    )
    for name in ("came out up to", "end", "waiting", "since"):
        table.add_column(name, justify="right")
    for one in status.inputs:
        table.add_row(
            Text(printable(one.partition)),
            Text(printable(one.worker or "nobody")),
            "never" if one.came_out_up_to is None else f"{one.came_out_up_to:,}",
            f"{one.end:,}",
            f"{one.waiting:,}",
            "" if one.since_ms is None else shown_time(one.since_ms),
        )
    report().print(table)
    for line in status.problems(max_waiting):
        click.echo(printable(line))
