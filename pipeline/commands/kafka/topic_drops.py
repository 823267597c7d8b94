"""The drops of an app's duplicates topic, for the commands that show drops."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.commands.kafka.run import settings_to_connect
from twinsieve.pipeline.commands.options import SettingsFlags
from twinsieve.pipeline.commands.terminal import say_error

if TYPE_CHECKING:
    from twinsieve.pipeline.why.duplicates_topic import TopicDrops

_EVERY = 50_000


@contextmanager
def topic_drops(flags: SettingsFlags, since: str | None, most: int | None) -> Iterator[TopicDrops]:
    """The drops of the app. At the end a line on stderr says what was read.

    since: as `since_ms`; most: number of the newest drops; None: the default
    raises: as `TopicDrops`; click.UsageError; ConfigError
    """
    from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
    from twinsieve.pipeline.service.run import SystemClock
    from twinsieve.pipeline.why.duplicates_topic import MOST_DROPS, TopicDrops

    clock = SystemClock()
    begin_ms = since_ms(since, clock.now_ms()) if since is not None else None
    settings = settings_to_connect(flags)
    with closing(connect_by_settings(settings)) as broker:
        drops = TopicDrops(settings, broker, clock, since_ms=begin_ms, most=most or MOST_DROPS, tell=_tell)
        with closing(drops):
            yield drops
            say_error(_reach(drops))


def since_ms(text: str, now_ms: int) -> int:
    """Ms since 1970 of a time, or of a duration before now.

    raises: click.UsageError

    >>> since_ms("24h", 1_600_000_000_000), since_ms("2020-09-12", 0)
    (1599913600000, 1599868800000)
    """
    from twinsieve.pipeline.settings.values import moment_ms, read_duration_ms

    try:
        return max(0, now_ms - read_duration_ms(text))
    except ValueError:
        time = moment_ms(text) if "-" in text[1:] else None
    if time is None or time < 0:
        raise click.UsageError(
            f"--since {text!r} is neither a duration, as 24h, nor a time: 2024-05-01T12:00"
        )
    return time


def _tell(records: int) -> None:
    if records % _EVERY == 0 and sys.stderr.isatty():
        say_error(f"{records:,} records read")


def _reach(drops: TopicDrops) -> str:
    reached = sorted(drops.reached.items())
    parts = [f"[{at.number}] {reach.low:,} to {reach.high:,}" for at, reach in reached[:8]]
    more = ", …" if len(reached) > len(parts) else ""
    records = sum(reach.records for _, reach in reached)
    line = f"read {records:,} records of {drops.name}{': ' if parts else ''}{', '.join(parts)}{more}"
    if drops.left_out:
        line += f"; {drops.left_out:,} older offsets left out: a higher limit reads more"
    if drops.foreign:
        line += f"; {drops.foreign:,} are not drops of this app"
    return line
