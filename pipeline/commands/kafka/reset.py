"""`twinsieve reset`."""

from __future__ import annotations

import click

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.commands.kafka.run import settings_to_connect
from twinsieve.pipeline.commands.options import SettingsFlags, settings_options
from twinsieve.pipeline.commands.terminal import examples


@click.command(
    "reset",
    epilog=examples(
        "twinsieve reset -c kafka.yaml --to 2024-05-01T12:00",
        "twinsieve reset -c kafka.yaml --to earliest --to 'posts[3]=latest' --yes",
    ),
)
@settings_options
@click.option(
    "--to",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="earliest, latest, an offset, a time (2024-05-01T12:00), or topic[partition]=one of these; may be "
    "repeated.",
)
@click.option("--yes", is_flag=True, help="Move the offsets; without --yes the changes are only shown.")
def command(targets: tuple[str, ...], yes: bool, flags: SettingsFlags) -> None:
    """Move the input offsets of a stopped app. Messages that were emitted are not emitted again."""
    from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
    from twinsieve.pipeline.operate.reset import apply, plan
    from twinsieve.pipeline.operate.reset_targets import read_targets

    wanted = read_targets(targets)
    settings = settings_to_connect(flags)
    broker = connect_by_settings(settings)
    try:
        moves = plan(settings, broker, wanted)
        for move in moves:
            click.echo(printable(str(move)))
        if not any(move.changes for move in moves):
            click.echo("nothing to move", err=True)
        elif yes:
            apply(settings, broker, moves)
            click.echo("moved; start `twinsieve run` again", err=True)
        else:
            click.echo("nothing is moved yet; stop the app, then repeat this with --yes", err=True)
    finally:
        broker.close()
