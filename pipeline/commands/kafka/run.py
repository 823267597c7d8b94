"""`twinsieve run`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.commands.kafka.garbage import search_often
from twinsieve.pipeline.commands.kafka.logs import ends_logged, log_to_stderr
from twinsieve.pipeline.commands.kafka.process_options import member_option
from twinsieve.pipeline.commands.kafka.stopping import stopped_by_signals
from twinsieve.pipeline.commands.options import SettingsFlags, settings_options
from twinsieve.pipeline.commands.terminal import examples
from twinsieve.pipeline.settings import ConfigError
from twinsieve.stages.errors import UsageError

if TYPE_CHECKING:
    from twinsieve.pipeline.settings.model import Settings


def settings_to_connect(flags: SettingsFlags, *, dry_run: bool = False, has_pages: bool = False) -> Settings:
    """The settings, with every secret that connecting needs. Afterwards log records go to stderr.

    dry_run: whether log records name the shadow app (`<app>-shadow`)
    has_pages: whether the process opens the pages of the section `http`
    raises: ConfigError
    """
    from twinsieve.pipeline.settings.checks import (
        missing_secrets,
        open_doors,
        open_pages,
        refused_on_kafka,
        shadow,
    )

    settings = flags.settings(on_files=False)
    problems = missing_secrets(settings) + refused_on_kafka(settings)
    if problems:
        raise ConfigError([f"settings: {key} {problem}" for key, problem in problems])
    log_to_stderr(settings, (shadow(settings) if dry_run else settings).app)
    for warning in settings.warnings:
        logging.getLogger("twinsieve").warning("%s", warning)
    for key, problem in open_doors(settings) + (open_pages(settings) if has_pages else []):
        logging.getLogger("twinsieve").warning("settings: %s %s", key, problem)
    return settings


def _role(ctx: click.Context, _param: click.Parameter, given: str) -> str:
    """The text, unchanged, if it names roles. raises: click.UsageError"""
    from twinsieve.pipeline.service.roles import roles_of

    try:
        roles_of(given)
    except UsageError as error:
        raise click.UsageError(str(error), ctx) from error
    return given


@click.command(
    "run",
    epilog=examples(
        "twinsieve run -c kafka.yaml",
        "twinsieve run -c kafka.yaml --dry-run",
        "twinsieve run -c kafka.yaml --role worker --member worker-1",
        "twinsieve run -c shards.yaml --role worker,index",
    ),
)
@settings_options
@click.option(
    "--role",
    default="both",
    metavar="ROLES",
    callback=_role,
    help="What this process does: worker, index, shard, or several with commas; both: worker,index (both).",
)
@member_option
@click.option(
    "--move-output", is_flag=True, help="Accept that the app now writes to another output topic, for good."
)
@click.option(
    "--without-snapshots",
    is_flag=True,
    help="Start although the snapshots are lost; messages before the log begins are forgotten.",
)
@click.option("--dry-run", is_flag=True, help="Judge and count next to the running app, and emit nothing.")
def command(
    role: str,
    member: str | None,
    dry_run: bool,
    move_output: bool,
    without_snapshots: bool,
    flags: SettingsFlags,
) -> None:
    """Run the sieve on Kafka. Start one process or twenty; SIGTERM stops a process cleanly.

    Exit codes: 0 stopped; 1 start it again; 2 wrong usage or settings; 3 an operator must act, see the last
    line of the log.
    """
    settings = settings_to_connect(flags, dry_run=dry_run, has_pages=True)
    with ends_logged():
        from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
        from twinsieve.pipeline.service.run import Pages, no_pages, run_service

        pages: Pages = no_pages
        if settings.http.pages is not None:
            from twinsieve.pipeline.status_pages.server import watched

            pages = watched
        search_often()
        with stopped_by_signals("run") as stop:
            run_service(
                settings,
                connect_by_settings,
                pages=pages,
                role=role,
                member=member,
                dry_run=dry_run,
                move_output=move_output,
                without_snapshots=without_snapshots,
                stop=stop,
            )
        logging.getLogger("twinsieve").info("run: stopped")
