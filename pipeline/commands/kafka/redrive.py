"""`twinsieve redrive`."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.basics.shown_time import shown_time
from twinsieve.pipeline.commands.kafka.garbage import search_often
from twinsieve.pipeline.commands.kafka.logs import ends_logged
from twinsieve.pipeline.commands.kafka.process_options import member_option, since_option
from twinsieve.pipeline.commands.kafka.run import settings_to_connect
from twinsieve.pipeline.commands.kafka.stopping import stopped_by_signals
from twinsieve.pipeline.commands.options import SettingsFlags, settings_options
from twinsieve.pipeline.commands.terminal import examples, report

if TYPE_CHECKING:
    from twinsieve.pipeline.settings.model import Settings


@click.command(
    "redrive",
    epilog=examples(
        "twinsieve redrive -c kafka.yaml --dry-run",
        "twinsieve redrive -c kafka.yaml --reason missing_field --since 2024-05-01T12:00",
    ),
)
@settings_options
@click.option(
    "--reason",
    type=click.Choice([reason.value for reason in DeadLetterReason]),
    help="Only dead letters of this reason (all reasons).",
)
@since_option
@click.option("--dry-run", is_flag=True, help="Count dead letters and what can be read now; judge nothing.")
@member_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    reason: str | None,
    since_ms: int | None,
    dry_run: bool,
    member: str | None,
    flags: SettingsFlags,
) -> None:
    """Judge dead letters again, after their cause is repaired: each comes out once, or is refused again.

    Reads output.dead_letter up to its present end, while `run` is running or not. A dead letter that was
    redriven is not judged twice; after an interruption, run the command again. Messages keep key, value,
    headers, timestamp and twinsieve-origin, but come out after later messages of their partition.

    The exit code is 0 if everything was judged, 1 if not.
    """
    chosen = DeadLetterReason(reason) if reason is not None else None
    settings = settings_to_connect(flags)
    if dry_run:
        _count(settings, chosen, since_ms)
        return
    with ends_logged():
        from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
        from twinsieve.pipeline.service.redrive import run_redrive

        search_often()
        with stopped_by_signals("redrive") as stop:
            redriven = run_redrive(
                settings, connect_by_settings, reason=chosen, since_ms=since_ms, member=member, stop=stop
            )
    for line in redriven.lines():
        click.echo(line)
    ctx.exit(0 if redriven.finished else 1)


def _count(settings: Settings, reason: DeadLetterReason | None, since_ms: int | None) -> None:
    from rich.table import Table

    from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
    from twinsieve.pipeline.operate.dead_letters import letter_topic, survey
    from twinsieve.pipeline.service.run import SystemClock

    with closing(connect_by_settings(settings)) as broker:
        topic = letter_topic(settings, broker, since_ms)
        found = survey(settings, broker, SystemClock(), topic, reason, read=True)
    table = Table("reason", title=f"dead letters in {topic.info.name}", title_justify="left")
    for name in ("messages", "redriven for certain", "left", "of these readable now", "since"):
        table.add_column(name, justify="right")
    for own, letters in sorted(found.letters.items()):
        since = "" if letters.since_ms is None else shown_time(letters.since_ms)
        counts = (letters.count, letters.redriven, letters.left, letters.readable)
        table.add_row(own, *(f"{count:,}" for count in counts), since)
    report().print(table)
    forgotten = [own for own, letters in sorted(found.letters.items()) if not letters.recorded]
    if forgotten:
        click.echo(
            f"{', '.join(forgotten)}: no earlier redrive is on record. If there was one, Kafka has forgotten "
            "it (offsets.retention.minutes, 7 days by default), and its dead letters are counted as left; "
            "they do not come out again"
        )
    if found.unreadable:
        click.echo(
            f"{found.unreadable:,} offsets are left out: their batches cannot be read "
            "(input.on_unreadable_batch: skip)"
        )
    if found.others:
        click.echo(f"{found.others:,} messages have no reason that twinsieve writes; they stay there")
