"""What `twinsieve why` says of a message in a file of duplicates, and how it explains a drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.commands.explained import print_explanation
from twinsieve.pipeline.commands.terminal import report, say_error

if TYPE_CHECKING:
    from twinsieve.pipeline.settings.model import Settings
    from twinsieve.pipeline.why.drops import Drop
    from twinsieve.pipeline.why.explain import Message


def why_in_file(duplicates: str, settings: Settings, *, id_: str | None, position: int | None) -> int:
    """Print why the message with this id, or at this position, was dropped. returns: the exit code"""
    from twinsieve.pipeline.why.drops import find_drop
    from twinsieve.pipeline.why.explain import Message
    from twinsieve.stages.errors import shown

    drop = find_drop(duplicates, id_=id_, position=position)
    if drop is None:
        named = f"id {id_!r}" if id_ is not None else f"position {position}"
        say_error(f"{shown(duplicates)}: has no message with {named}: it was kept, not readable, or not seen")
        return 1
    print_drop(drop)
    if drop.leader is None:
        return 0
    if drop.message.text is None or drop.leader.text is None:
        click.echo("its leader's text is not in the file: an earlier run on the state did not keep it")
        return 0
    give = "the settings of that run, by -c, --profile or --set"
    pair = Message(drop.leader.text), Message(drop.message.text)
    explain_pair(drop.stage, *pair, settings, "that run", give)
    return 0


def print_drop(drop: Drop) -> None:
    """Print for which kept message one was dropped, and how alike the two are."""
    said = f"{drop.message} was dropped, {drop.degree}"
    if drop.leader is None:
        click.echo(printable(f"{said}, unconfirmed"))
        click.echo(
            "only the Bloom filter knows the earlier copy: it left the near window before this one came"
        )
        return
    flags = f" ({', '.join(drop.flags)})" if drop.flags else ""
    click.echo(printable(f"{said} to {drop.leader}, which was kept{flags}"))


def explain_pair(
    verdict: str, earlier: Message, later: Message, settings: Settings, who: str, give: str
) -> None:
    """Print what each step finds for two messages, and a line on stderr if that is another verdict.

    verdict: exact, near or unique; who: said so; give: what to give so that it is the same
    """
    from twinsieve.pipeline.commands.warm_up import loading
    from twinsieve.pipeline.why.explain import explain

    if settings.exact.fields and verdict == "exact":
        click.echo(f"both have equal values of exact.fields: {', '.join(settings.exact.fields)}")
        return
    with loading():
        explanation = explain(earlier, later, settings)
    print_explanation(report(), explanation)
    if explanation.report.verdict != verdict:
        say_error(f"{who} said {verdict}, these settings say {explanation.report.verdict}: give {give}")
