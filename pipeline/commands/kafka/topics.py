"""`twinsieve topics check | create | acls`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.commands.kafka.run import settings_to_connect
from twinsieve.pipeline.commands.options import FILE_NAME, SettingsFlags, settings_options
from twinsieve.pipeline.commands.terminal import examples

if TYPE_CHECKING:
    from twinsieve.pipeline.settings.model import Settings

_T = TypeVar("_T")


@click.group(
    "topics",
    epilog=examples(
        "twinsieve topics check -c kafka.yaml",
        "twinsieve topics create -c kafka.yaml",
        "twinsieve topics create -c kafka.yaml --input-partitions 4",
        "twinsieve topics acls -c kafka.yaml --principal User:sieve",
        "twinsieve topics acls -c kafka.yaml --principal User:trial --dry-run",
        "twinsieve topics acls -c kafka.yaml --principal User:worker --role worker",
    ),
)
def command() -> None:
    """Check or create the topics of this app: inputs, outputs and internal ones."""


@command.command("check")
@settings_options
@click.pass_context
def check_topics(ctx: click.Context, /, flags: SettingsFlags) -> None:
    """Show the problems of the topics, one a line; the exit code is 1 if there is one.

    What only costs is shown too, but does not count: topics that grow without limit because the settings ask
    for it, and topics that could take larger blocks.
    """
    from twinsieve.pipeline.operate.topic_checks import Severity, check

    findings = _answer_of(flags, check)
    for finding in findings:
        click.echo(printable(str(finding)))
    ctx.exit(1 if any(finding.severity is not Severity.COSTS for finding in findings) else 0)


@command.command("create")
@settings_options
@click.option(
    "--input-partitions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Create missing input topics too, with N partitions each.",
)
def create_topics(input_partitions: int | None, flags: SettingsFlags) -> None:
    """Create missing output and internal topics; print their names."""
    from twinsieve.pipeline.operate.topic_checks import create, endless

    created = _answer_of(flags, partial(create, input_partitions=input_partitions))
    for name in created:
        click.echo(printable(name))
    for finding in endless(flags.settings(on_files=False)):
        if finding.topic in created:
            click.echo(printable(str(finding)), err=True)


@command.command("acls")
@settings_options
@click.option(
    "--principal",
    default="User:twinsieve",
    metavar="NAME",
    help="The principal that the processes log in as (User:twinsieve).",
)
@click.option(
    "--command-config",
    default="admin.properties",
    type=FILE_NAME,
    help="File of client properties for kafka-acls.sh if the connection is not plaintext (admin.properties).",
)
@click.option(
    "--role",
    metavar="ROLES",
    help="Print the permissions for `run --role ROLES` alone (all roles, seed, reset and redrive).",
)
@click.option(
    "--dry-run", is_flag=True, help="Print the permissions for `run --dry-run`, which writes no output."
)
@click.option(
    "--read-only",
    is_flag=True,
    help="Print the permissions for why, audit, status and redrive --dry-run, which write nothing.",
)
def show_acls(
    principal: str,
    command_config: str,
    role: str | None,
    dry_run: bool,
    read_only: bool,
    flags: SettingsFlags,
) -> None:
    """Print commands that grant the permissions `run` and `redrive` need, and no others. Needs no broker."""
    from twinsieve.pipeline.operate.acls import acls
    from twinsieve.pipeline.service.roles import ROLES, check_roles, roles_of

    if read_only and (dry_run or role is not None):
        raise click.UsageError("give --read-only alone; it prints other rights than --dry-run and --role")
    settings = flags.settings(on_files=False)
    roles = frozenset(ROLES) if role is None else roles_of(role)
    if role is not None:
        check_roles(roles, settings)
    for line in acls(settings, principal, command_config, roles=roles, dry_run=dry_run, read_only=read_only):
        click.echo(printable(line))


def _answer_of(flags: SettingsFlags, question: Callable[[Settings, Any], list[_T]]) -> list[_T]:
    from twinsieve.pipeline.commands.kafka.connect import connect_by_settings

    settings = settings_to_connect(flags)
    with closing(connect_by_settings(settings)) as broker, closing(broker.admin()) as admin:
        return question(settings, admin)
