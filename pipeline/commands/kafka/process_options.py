"""Options of the commands that run as a process of an app: `run`, `seed` and `redrive`."""

from __future__ import annotations

import click

member_option = click.option(
    "--member",
    metavar="NAME",
    help="A name for this process that stays the same after a restart; no two processes may share it.",
)


def _moment(_ctx: click.Context, _param: click.Parameter, given: str | None) -> int | None:
    """Ms since 1970 of the time that is given. raises: click.UsageError"""
    from twinsieve.pipeline.settings.values import moment_ms

    time = moment_ms(given) if given is not None else None
    if given is not None and (time is None or time < 0):
        raise click.UsageError(f"--since {given!r} is not a time; write it as 2024-05-01T12:00:00+08:00")
    return time


since_option = click.option(
    "--since",
    "since_ms",
    metavar="TIME",
    callback=_moment,
    help="Start at this message time, for example 2024-05-01T12:00 (start of the topic).",
)
