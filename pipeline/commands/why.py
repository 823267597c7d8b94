"""`twinsieve why`."""

from __future__ import annotations

import click

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.commands.explained import print_explanation
from twinsieve.pipeline.commands.options import FILE_NAME, SettingsFlags, settings_options
from twinsieve.pipeline.commands.terminal import examples, report, say_error


@click.command(
    "why",
    epilog=examples(
        "twinsieve why --id p0000000001 --duplicates dropped.jsonl",
        "twinsieve why --position 2 --duplicates dropped.jsonl",
    ),
)
@click.option("--id", "id_", metavar="ID", help="Id of the message.")
@click.option(
    "--position", type=click.IntRange(1), metavar="N", help="Row of the message in the run, from 1."
)
@click.option(
    "--duplicates", required=True, type=FILE_NAME, help="What `dedup --duplicates` wrote; it holds the texts."
)
@settings_options
def command(id_: str | None, position: int | None, duplicates: str, flags: SettingsFlags) -> int:
    """Show why `dedup` dropped a message: for which kept one, and what each step finds for the two.

    Give the settings of that run; the steps are computed again with them. The exit code is 1 if the message
    is not in the file: then the run kept it, could not read it, or did not see it.
    """
    from twinsieve.pipeline.audit.drops import find_drop
    from twinsieve.pipeline.commands.warm_up import loading
    from twinsieve.pipeline.evaluate.explain import Message, explain
    from twinsieve.stages.errors import shown

    if (id_ is None) == (position is None):
        raise click.UsageError("name the message by --id or by --position")
    settings = flags.settings(on_files=True)
    drop = find_drop(duplicates, id_=id_, position=position)
    if drop is None:
        named = f"id {id_!r}" if id_ is not None else f"position {position}"
        say_error(f"{shown(duplicates)}: has no message with {named}: it was kept, not readable, or not seen")
        return 1
    said = f"{drop.message} was dropped, {drop.degree}"
    if drop.leader is None:
        click.echo(printable(f"{said}, unconfirmed"))
        click.echo(
            "only the Bloom filter knows the earlier copy: it left the near window before this one came"
        )
        return 0
    click.echo(printable(f"{said} to {drop.leader}, which was kept{_in_words(drop.flags)}"))
    if drop.message.text is None or drop.leader.text is None:
        click.echo("its leader's text is not in the file: an earlier run on the state did not keep it")
        return 0
    if settings.exact.fields and drop.stage == "exact":
        click.echo(f"both have equal values of exact.fields: {', '.join(settings.exact.fields)}")
        return 0
    with loading():
        explanation = explain(Message(drop.leader.text), Message(drop.message.text), settings)
    print_explanation(report(), explanation)
    if explanation.report.verdict != drop.stage:
        say_error(
            f"that run said {drop.stage}, these settings say {explanation.report.verdict}: give the settings "
            "of that run, by -c, --profile or --set"
        )
    return 0


def _in_words(flags: tuple[str, ...]) -> str:
    return f" ({', '.join(flags)})" if flags else ""
