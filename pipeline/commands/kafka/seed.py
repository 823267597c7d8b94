"""`twinsieve seed`."""

from __future__ import annotations

import click

from twinsieve.pipeline.commands.kafka.garbage import search_often
from twinsieve.pipeline.commands.kafka.logs import ends_logged
from twinsieve.pipeline.commands.kafka.process_options import member_option, since_option
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
@since_option
@member_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    topic: str,
    since_ms: int | None,
    member: str | None,
    flags: SettingsFlags,
) -> None:
    """Fill the windows from an existing output before the app goes live. Emits nothing. Run it again
    after a stop: it continues.
    """
    settings = settings_to_connect(flags)
    with ends_logged():
        from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
        from twinsieve.pipeline.service.seed import run_seed

        search_often()
        with stopped_by_signals("seed") as stop:
            seeded = run_seed(
                settings, topic, connect_by_settings, since_ms=since_ms, member=member, stop=stop
            )
    click.echo(str(seeded))
    ctx.exit(0 if seeded.finished else 1)
