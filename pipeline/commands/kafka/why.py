"""`twinsieve why`."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.commands.explained import print_explanation, print_texts
from twinsieve.pipeline.commands.kafka.run import settings_to_connect
from twinsieve.pipeline.commands.options import FILE_NAME, SettingsFlags, settings_options
from twinsieve.pipeline.commands.terminal import examples, report, say_error

if TYPE_CHECKING:
    from twinsieve.pipeline.settings.model import Settings
    from twinsieve.pipeline.why.drops import Drop
    from twinsieve.pipeline.why.explain import Message
    from twinsieve.pipeline.why.verdict import Account

_GIVE = "the settings of the app, by -c"


@click.command(
    "why",
    epilog=examples(
        "twinsieve why 'posts[0]@17' -c kafka.yaml",
        "twinsieve why --id p0000000001 -c kafka.yaml --since 24h",
        "twinsieve why --id p0000000001 --duplicates dropped.jsonl",
        "twinsieve why --position 2 --duplicates dropped.jsonl",
    ),
)
@click.argument("at", required=False, metavar="[TOPIC[PARTITION]@OFFSET]")
@click.option("--id", "id_", metavar="ID", help="Id of the message.")
@click.option(
    "--position", type=click.IntRange(1), metavar="N", help="Row number of the message in that run, from 1."
)
@click.option("--duplicates", type=FILE_NAME, help="The file that `dedup --duplicates` wrote.")
@click.option("--since", metavar="24h|TIME", help="With --id on Kafka, only drops from this time on.")
@click.option(
    "--read-at-most",
    "most",
    type=click.IntRange(1),
    metavar="N",
    help="On Kafka, read at most N records (20000; with --id 100000).",
)
@click.option("--json", "as_json", is_flag=True, help="On Kafka, print one JSON object.")
@settings_options
def command(
    at: str | None,
    id_: str | None,
    position: int | None,
    duplicates: str | None,
    since: str | None,
    most: int | None,
    as_json: bool,
    flags: SettingsFlags,
) -> int:
    """Show why a message was dropped: for which kept one, and what each step finds for the two.

    Of a run of `dedup`, name the message by --id or --position in the file of --duplicates. On Kafka, name it
    by its position in the input, or a dropped one by its --id, which is looked for in the duplicates topic
    from the newest message back. The verdict is from the app's decisions, of which a small part is read, and
    texts are fetched from the topics that still have them. For a message that was kept although it is similar
    to another one, it shows what kept the two apart.

    Give the settings of that run, or of the app; the steps are computed again with them. The exit code is 0
    for a dropped message, 1 for any other: it was kept, could not be read, waits, or no record of it is left.
    """
    if duplicates is None:
        return _on_kafka(at, id_, position, since, most, flags, as_json=as_json)
    if at is not None:
        raise click.UsageError("a position in a topic stands alone; --id and --position go with --duplicates")
    if since is not None or most is not None or as_json:
        raise click.UsageError("--since, --read-at-most and --json are for messages on Kafka")
    if (id_ is None) == (position is None):
        raise click.UsageError("name the message by --id or by --position")
    return _in_file(duplicates, flags.settings(on_files=True), id_=id_, position=position)


def _in_file(duplicates: str, settings: Settings, *, id_: str | None, position: int | None) -> int:
    """Print why the message with this id, or at this position, was dropped. returns: the exit code"""
    from twinsieve.pipeline.why.drops import find_drop
    from twinsieve.pipeline.why.explain import Message
    from twinsieve.stages.errors import shown

    drop = find_drop(duplicates, id_=id_, position=position)
    if drop is None:
        named = f"id {id_!r}" if id_ is not None else f"position {position}"
        say_error(f"{shown(duplicates)}: has no message with {named}: it was kept, not readable, or not seen")
        return 1
    _print_drop(drop)
    if drop.leader is None:
        return 0
    if drop.message.text is None or drop.leader.text is None:
        click.echo("its leader's text is not in the file: an earlier run on the state did not keep it")
        return 0
    give = "the settings of that run, by -c, --profile or --set"
    pair = Message(drop.leader.text), Message(drop.message.text)
    _explain_pair(drop.stage, *pair, settings, "that run", give)
    return 0


def _print_drop(drop: Drop) -> None:
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


def _explain_pair(
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


def _on_kafka(
    at: str | None,
    id_: str | None,
    number: int | None,
    since: str | None,
    most: int | None,
    flags: SettingsFlags,
    *,
    as_json: bool,
) -> int:
    from twinsieve.pipeline.broker.input_position import read_position
    from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
    from twinsieve.pipeline.service.run import SystemClock
    from twinsieve.pipeline.why.verdict import MOST_RECORDS, Outcome, verdict_of

    if number is not None or (at is None) == (id_ is None):
        raise click.UsageError(
            "name a message on Kafka, as in why 'posts[0]@17' -c FILE, or by --id; or a file by --duplicates"
        )
    position = read_position(at) if at is not None else None
    if at is not None and position is None:
        raise click.UsageError(
            f"{at!r} is not a position; write topic[partition]@offset, as in 'posts[0]@17'"
        )
    if at is not None and since is not None:
        raise click.UsageError("--since goes with --id")
    if not flags.names_app:
        raise click.UsageError(f"{at or id_!r} is a message on Kafka: give {_GIVE} FILE; or --duplicates")
    drop = None
    if position is None:
        drop = _newest_drop(str(id_), since, most, flags)
        position = read_position(f"{drop.message.source}@{drop.message.line}") if drop is not None else None
        if position is None:
            return 1
    settings = settings_to_connect(flags)
    with closing(connect_by_settings(settings)) as broker:
        account = verdict_of(settings, broker, SystemClock(), position, most or MOST_RECORDS, dropped=drop)
    if as_json:
        # ASCII, so that texts of strangers act on no terminal.
        click.echo(json.dumps(account.as_dict()))
    else:
        _print(account, settings)
    return 0 if account.outcome is Outcome.DROPPED else 1


def _newest_drop(id_: str, since: str | None, most: int | None, flags: SettingsFlags) -> Drop | None:
    """The newest drop with this id. If there is none, a line on stderr says so."""
    from twinsieve.pipeline.commands.kafka.topic_drops import topic_drops

    if flags.settings(on_files=False).input.id_field is None:
        raise click.UsageError(
            "--id finds nothing, because input.id_field is none, so no id is read; name the field with the "
            "id, as --set input.id_field=id, or give the position of the message, as why 'posts[0]@17'"
        )
    with topic_drops(flags, since, most) as drops:
        drop = drops.newest(id_)
        if drop is None:
            say_error(
                f"{drops.name}: no message with id {id_!r} is among those read: it was kept, not readable, "
                "not seen, or dropped earlier"
            )
        return drop


def _print(account: Account, settings: Settings) -> None:
    where = str(account.position)
    if account.original is not None and account.original.id is not None:
        where += f" (id {account.original.id})"
    if account.drop is not None:
        _print_drop(account.drop)
    elif account.apart_from is not None:
        other, why = account.apart_from
        click.echo(printable(f"{where} was kept, though it is similar to {other}: {why}"))
    else:
        click.echo(printable(f"{where}: {_OUTCOMES[account.outcome.value]}"))
    for line in account.lines:
        click.echo(printable(line))
    later = account.original.message if account.original is not None else None
    earlier = account.other.message if account.other is not None else None
    if later is not None and earlier is not None:
        verdict = account.drop.stage if account.drop is not None else "unique"
        _explain_pair(verdict, earlier, later, settings, "the app", _GIVE)
    elif account.drop is not None or account.apart_from is not None:
        print_texts(report(), earlier.text if earlier else None, later.text if later else None)
    for name, reach in account.reached.items():
        say_error(f"read {reach.records:,} records of {name}, from {reach.low:,} to {reach.high:,}")


_OUTCOMES = {
    "dropped": "was dropped",
    "kept": "was kept",
    "unreadable": "is a dead letter, and was not judged",
    "waits": "is not judged yet",
    "unknown": "no verdict is on record",
}
