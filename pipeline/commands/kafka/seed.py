"""`twinsieve seed`."""

from __future__ import annotations

import click

from twinsieve.pipeline.commands.kafka.logs import ends_logged
from twinsieve.pipeline.commands.kafka.run import settings_to_connect
from twinsieve.pipeline.commands.kafka.stopping import stopped_by_signals
from twinsieve.pipeline.commands.options import SettingsFlags, settings_options
from twinsieve.pipeline.commands.terminal import examples


@click.command(
    "seed",
    epilog=examples(
        "twinsieve seed -c kafka.yaml --topic posts.unique --since 2024-05-01T12:00",
    ),
)
@settings_options
@click.option(
    "--topic", required=True, metavar="NAME", help="The existing output topic, for example posts.unique."
)
@click.option(
    "--since",
    metavar="TIME",
    help="Start at this message time, for example 2024-05-01T12:00 (start of the topic).",
)
@click.option(
    "--member",
    metavar="NAME",
    help="A name for this process that stays the same after a restart; no two processes may share it.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    topic: str,
    since: str | None,
    member: str | None,
    flags: SettingsFlags,
) -> None:
    """Fill the windows from an existing output before the app goes live. Emits nothing. Run it again
    after a stop: it continues.
    """
    from twinsieve.pipeline.settings.values import moment_ms

    since_ms = moment_ms(since) if since is not None else None
    if since is not None and (since_ms is None or since_ms < 0):
        raise click.UsageError(f"--since {since!r} is not a time; write it as 2024-05-01T12:00:00+08:00")
    settings = settings_to_connect(flags)
    with ends_logged():
        from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
        from twinsieve.pipeline.service.seed import run_seed

        with stopped_by_signals("seed") as stop:
            seeded = run_seed(
                settings, topic, connect_by_settings, since_ms=since_ms, member=member, stop=stop
            )
    click.echo(str(seeded))
    ctx.exit(0 if seeded.finished else 1)
