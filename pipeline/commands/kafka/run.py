"""`twinsieve run`."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Literal

import click

from twinsieve.pipeline.commands.options import SettingsFlags, settings_options
from twinsieve.pipeline.commands.terminal import examples, printable
from twinsieve.pipeline.settings import ConfigError

if TYPE_CHECKING:
    from twinsieve.pipeline.settings.model import Settings

_SWITCH_S = 0.001
"""Interval at which the interpreter's lock may change threads. With the default of 5 ms a role waits that
long for the other role after each call to a broker, which at low rates is longer than judging."""


class _Line(logging.Formatter):
    """One line a record, whatever a message or name holds."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _log_to_stderr(settings: Settings) -> None:
    """Send log records to stderr: time, level and logger as key=value, then the message."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line("time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s"))
    logging.basicConfig(level=settings.log.level.upper(), handlers=[handler], force=True)


def settings_to_connect(flags: SettingsFlags) -> Settings:
    """Settings with every secret that connecting needs; what they log goes to stderr. raises: ConfigError"""
    from twinsieve.pipeline.settings.checks import missing_secrets, open_doors, refused_on_kafka

    settings = flags.settings(on_files=False)
    problems = missing_secrets(settings) + refused_on_kafka(settings)
    if problems:
        raise ConfigError([f"settings: {key} {problem}" for key, problem in problems])
    _log_to_stderr(settings)
    for key, problem in open_doors(settings):
        logging.getLogger("twinsieve").warning("settings: %s %s", key, problem)
    return settings


@click.command(
    "run",
    epilog=examples(
        "twinsieve run -c kafka.yaml",
        "twinsieve run -c kafka.yaml --dry-run",
        "twinsieve run -c kafka.yaml --role worker --member worker-1",
    ),
)
@settings_options
@click.option(
    "--role",
    default="both",
    type=click.Choice(["worker", "index", "both"]),
    help="Roles of this process (both).",
)
@click.option("--member", metavar="NAME", help="A stable name of this process, unique in the deployment.")
@click.option(
    "--move-output", is_flag=True, help="Accept that the output of the app has changed, permanently."
)
@click.option("--dry-run", is_flag=True, help="Judge and count beside the running app; emit nothing.")
def command(
    role: Literal["worker", "index", "both"],
    member: str | None,
    dry_run: bool,
    move_output: bool,
    flags: SettingsFlags,
) -> None:
    """Run the sieve on Kafka. Start one process or twenty; SIGTERM stops a process cleanly."""
    from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
    from twinsieve.pipeline.service.run import run_service

    settings = settings_to_connect(flags)
    sys.setswitchinterval(_SWITCH_S)
    run_service(
        settings, connect_by_settings, role=role, member=member, dry_run=dry_run, move_output=move_output
    )
