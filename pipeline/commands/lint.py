"""`twinsieve lint`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.commands.options import FILE_NAME, SettingsFlags, settings_options
from twinsieve.pipeline.commands.terminal import examples
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.values import MEAN_CHARACTERS, read_duration_ms, read_size_bytes, size_text
from twinsieve.stages.errors import SieveError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from twinsieve.pipeline.settings.model import Settings
    from twinsieve.pipeline.settings.show import Shown
    from twinsieve.pipeline.settings.tree import Tree
    from twinsieve.pipeline.sizing.cost import Cost
    from twinsieve.pipeline.sizing.cover import Asked


def _amount(read: Callable[[object], int]) -> Callable[..., int | None]:
    """Reads the value of an option as settings read it: a duration in ms, or a size in bytes."""

    def convert(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        try:
            return None if value is None else read(value)
        except ValueError as error:
            raise click.UsageError(f"{param.opts[0]} {error}", ctx) from error

    return convert


def _finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """The number; a range of click holds nan too. raises: click.UsageError"""
    if not math.isfinite(value):
        raise click.UsageError(f"{param.opts[0]} is {value}; write a number, as 5000", ctx)
    return value


_OF_KAFKA = ("app", "input.topics", "output", "kafka", "topics", "state", "http", "near.answers")
"""Keys and sections that have an effect only on Kafka, not on files."""


@click.command(
    "lint",
    epilog=examples(
        "twinsieve lint my.yaml --rate 1000 --partitions 4",
        "twinsieve lint --rate 1000 --cover 2h --repeats 0.4 --memory 16GiB",
        "twinsieve lint --rate 5000 --cover 7d --repeats 0.4 --machines 8 --memory 96GiB",
        "twinsieve lint --show my.yaml --similarity 0.8",
    ),
)
@click.argument("file", required=False, type=FILE_NAME, metavar="[FILE]")
@settings_options
@click.option(
    "--rate",
    default=5000.0,
    type=click.FloatRange(min=0.001),
    callback=_finite,
    help="Expected messages a second on Kafka (5000).",
)
@click.option(
    "--partitions",
    default=8,
    type=click.IntRange(min=1, max=100_000),
    help="Input partitions that one `run` process reads; the last process left reads them all (8).",
)
@click.option(
    "--characters",
    default=MEAN_CHARACTERS,
    type=click.FloatRange(min=1, max=100_000),
    callback=_finite,
    metavar="N",
    help=f"Mean length of kept texts, in characters ({MEAN_CHARACTERS}).",
)
@click.option(
    "--cover",
    callback=_amount(read_duration_ms),
    metavar="TIME",
    help="Print settings whose near window reaches back this far, for example 24h.",
)
@click.option(
    "--repeats",
    default=0.0,
    type=click.FloatRange(min=0, max=0.99),
    callback=_finite,
    metavar="SHARE",
    help="With --cover: the share of messages that are dropped (0: all are kept).",
)
@click.option(
    "--memory",
    "machine",
    callback=_amount(read_size_bytes),
    metavar="SIZE",
    help="With --cover: memory of the machine, or of each, for example 64GiB (of this machine).",
)
@click.option(
    "--machines",
    type=click.IntRange(min=2, max=1_000),
    metavar="N",
    help="With --cover: settings with shards for this many machines, one of which has the index.",
)
@click.option(
    "--show",
    is_flag=True,
    help="Print every setting in effect and where it comes from, instead of the costs.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    file: str | None,
    rate: float,
    partitions: int,
    characters: float,
    cover: int | None,
    repeats: float,
    machine: int | None,
    machines: int | None,
    show: bool,
    flags: SettingsFlags,
) -> None:
    """Show every problem of a settings FILE as `path:line:column: problem`; if there is none, show the costs.

    The costs on Kafka are shown if something is set for Kafka, or if a rate is given. With --cover it prints
    only settings for a file, with their costs as comments.
    Environment variables and flags count as they do for other commands. The exit code is 2 if there is a
    problem.
    """
    from twinsieve.pipeline.commands.terminal import report
    from twinsieve.pipeline.files.address import path_here
    from twinsieve.pipeline.settings.checks import (
        missing_secrets,
        open_doors,
        open_pages,
        refused_on_kafka,
        unshared_state,
    )
    from twinsieve.pipeline.settings.load import check_tree, load_settings, tree_of_file
    from twinsieve.pipeline.settings.segment_bytes import Texts
    from twinsieve.pipeline.settings.show import settings_in_force, unlike_profile
    from twinsieve.pipeline.sizing.cost import cost_of

    if file is not None and flags.config is not None:
        raise click.UsageError("name the file once: lint FILE, or -c FILE")
    name = file or flags.config
    path = path_here("lint", name) if name is not None else None
    tree, overrides = tree_of_file(path), flags.overrides()
    settings, findings = check_tree(tree, os.environ, overrides)
    for finding in findings:
        click.echo(printable(str(finding)))
    if findings or settings is None:
        ctx.exit(2)
    problems = _problems_in_use(settings, tree, name or "settings")
    for line in problems:
        click.echo(printable(line))
    if problems:
        ctx.exit(2)
    if show:
        _print_settings(settings_in_force(settings, tree))
        return
    texts = Texts(characters)
    given = [
        name
        for name in ("rate", "partitions", "characters", "repeats", "machine", "machines")
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if cover is not None:
        from twinsieve.pipeline.sizing.cover import Asked, machine_bytes

        asked = Asked(rate, cover, machine or machine_bytes(), repeats, texts, partitions)
        _print_proposal(settings, asked, machines)
        return
    for name, option in (("repeats", "--repeats"), ("machine", "--memory"), ("machines", "--machines")):
        if name in given:
            raise click.UsageError(f"{option} is for --cover; add the time to cover, as --cover 24h")
    console = report()
    cost = cost_of(settings, rate, texts)
    _print_on_files(console, cost, load_settings(path, os.environ, overrides, on_files=True))
    if _names_kafka(tree) or given:
        _print_on_kafka(console, cost, settings, rate, partitions)
        if cost.estimates:
            from twinsieve.pipeline.sizing.cover import cost_lines

            click.echo("\n".join(cost_lines(cost.estimates, rate, texts)))
    else:
        console.print("for what they cost on Kafka add --rate N, in messages a second")
    for line in unlike_profile(settings, tree.values):
        click.echo(printable(line))
    if not settings.digest.seed and settings.digest.seed_file is None:
        console.print(
            "On files digests, ids and scopes are public without a seed: whoever writes the input can choose "
            "which messages are equal.\nWhere strangers post, set TWINSIEVE_DIGEST__SEED or digest.seed_file."
        )
    for key, problem in refused_on_kafka(settings):
        click.echo(f"refused on Kafka: {key} {problem}")
    for warning in settings.warnings:
        click.echo(printable(f"warning: {warning}"))
    for key, problem in open_doors(settings) + open_pages(settings) + unshared_state(settings):
        click.echo(printable(f"warning: {key} {problem}"))
    for key, problem in missing_secrets(settings):
        click.echo(f"not checked: secrets; {key} {problem}")


def _print_proposal(settings: Settings, asked: Asked, machines: int | None) -> None:
    """Print settings that cover the time, as a settings file; raises: UsageError if there are none.

    machines: number of machines that share the look-ups; None: one machine looks up alone
    """
    from twinsieve.pipeline.sizing.cover import proposal_lines, settings_to_cover
    from twinsieve.pipeline.sizing.shards import plan_lines, plan_shards

    if machines is None:
        lines = proposal_lines(settings_to_cover(settings, asked), asked)
    else:
        lines = plan_lines(plan_shards(settings, asked, machines))
    for line in lines:
        click.echo(line)


def _problems_in_use(settings: Settings, tree: Tree, name: str) -> list[str]:
    """Problems that only the use of the settings shows: in word lists, layouts, variants, paths of fields."""
    from twinsieve.pipeline.messages.reader import ListsError, MessageReader
    from twinsieve.pipeline.settings.load import place_of_key
    from twinsieve.pipeline.settings.stage_config import judging_scheme_of

    found: list[str] = []
    try:
        MessageReader(settings, cuts_lists=not _names_kafka(tree))
    except ListsError as error:
        found += [f"{place_of_key(tree, key)}: {key}: {problem}" for key, problem in error.problems]
    except UsageError as error:
        found.append(f"{name}:1:1: {error}")
    try:
        judging_scheme_of(settings)
    except ConfigError as error:
        found += error.findings
    except SieveError as error:
        found.append(f"{name}:1:1: {error}")
    return found


def _print_settings(shown: list[Shown]) -> None:
    """Print each setting as one line of key, value and origin, so that grep and diff can be used."""
    widths = [max(len(one.key) for one in shown), min(40, max(len(one.value) for one in shown))]
    for one in shown:
        click.echo(printable(f"{one.key:<{widths[0]}}  {one.value:<{widths[1]}}  {one.origin}"))


def _names_kafka(tree: Tree) -> bool:
    """Whether the file, the environment or a flag sets a key that has an effect only on Kafka."""
    written = {".".join(map(str, path[:length])) for path in tree.places for length in (1, 2)}
    return not written.isdisjoint(_OF_KAFKA)


def _print_on_files(console: Console, cost: Cost, settings: Settings) -> None:
    """Print the memory and the near stage, which are the same on files and on Kafka, and the windows on
    files."""
    from rich.table import Table

    from twinsieve.pipeline.dedup.report import Reach, window_line
    from twinsieve.pipeline.settings.show import near_in_force

    memory = Table(title="sieve at worst", title_justify="left", box=None)
    memory.add_column("part")
    memory.add_column("MiB", justify="right")
    for part, size in cost.memory.items():
        memory.add_row(part, f"{size / 2**20:,.1f}")
    memory.add_row("all", f"{cost.total_bytes / 2**20:,.1f}")
    console.print(memory)
    if cost.files:
        console.print(
            f"files of sealed segments at worst: {cost.files / 2**20:,.1f} MiB, in the state or in "
            "state.scratch; the page cache holds what of them is in use"
        )
    for line in near_in_force(settings.near):
        console.print(f"near: {line}")
    for stage, kept in (("near", settings.near), ("exact", settings.exact)):
        if kept.method != "none":
            window = kept.window
            said = window_line(Reach(window.messages, window.age_ms))
            console.print(f"{stage} window on files: {window.messages:,} {said}")


def _print_on_kafka(console: Console, cost: Cost, settings: Settings, rate: float, partitions: int) -> None:
    from rich.table import Table

    from twinsieve.pipeline.settings.fixed import profile_cost

    windows = Table(title=f"windows at {rate:,.0f} messages/s, all kept", title_justify="left", box=None)
    for column in ("window", "covers hours", "age asked, hours", "ended by"):
        windows.add_column(column, justify="right" if "hours" in column else "left")
    for cover in cost.covers:
        asked = "none" if cover.asked_hours is None else f"{cover.asked_hours:,.2f}"
        windows.add_row(cover.name, f"{cover.hours:,.2f}", asked, cover.by)
    console.print("on Kafka:")
    _print_held(console, settings, partitions)
    console.print(windows)
    for line in filter(None, (cover.shortfall(rate) for cover in cost.covers)):
        console.print(line, soft_wrap=True)
    console.print(f"log on Kafka: {cost.log_said}", soft_wrap=True)
    click.echo(profile_cost(settings))


def _print_held(console: Console, settings: Settings, partitions: int) -> None:
    from rich.table import Table

    from twinsieve.pipeline.service.probe_limits import START_S, alive_s
    from twinsieve.pipeline.service.roles import BOTH
    from twinsieve.pipeline.service.stop_limits import stop_s
    from twinsieve.pipeline.sizing.process_memory import held_by

    held, shares = held_by(settings, partitions), settings.near.answers == "shards"
    title = f"memory of one `run` with {partitions:,} input partitions, at worst (--partitions)"
    table = Table(title=title, title_justify="left", box=None)
    for column in ("part", "worker, MiB", "index, MiB", *(["shard, MiB"] if shares else [])):
        table.add_column(column, justify="left" if column == "part" else "right")
    for part, *sizes in (
        ("sieve", 0, held.sieve, 0),
        (f"verdicts not yet emitted, of {partitions:,} partitions", 0, held.open_verdicts, 0),
        ("those passed over by retention or `reset`, each time, for exact.window", 0, held.forgotten, 0),
        ("their copies, and kept messages that wait for the disk, for snapshots", 0, held.writing, 0),
        ("originals waiting (kafka.pending_bytes), a quarter and one poll more", held.waiting, 0, 0),
        ("texts while they are read (input.max_bytes)", held.reading, 0, 0),
        ("blocks that are polled and not judged", 0, held.held_blocks, 0),
        ("answers of shards, before they are judged with or written", 0, held.answers, held.answers_made),
        ("what look-ups read of segments, up to state.memory", 0, 0, held.segments),
        ("one more segment while it is copied and checked", 0, 0, held.taking_over),
        ("fetch buffers", held.worker_fetched, held.index_fetched, held.shard_fetched),
        ("memory of polled messages, kept for the next ones", held.arenas, held.arenas, held.arenas),
        ("producer queues", 2 * held.producer, held.producer, held.producer),
        ("all", held.worker, held.index, held.shard),
    ):
        if any(shown := sizes if shares else sizes[:2]):
            table.add_row(part, *(f"{size / 2**20:,.1f}" if size else "" for size in shown))
    console.print(table)
    console.print(f"both roles: {held.process / 2**20:,.1f} MiB, beside Python and its packages")
    limits = [("", BOTH, held.limit), ("a shard: ", "shard", held.shard_limit)]
    for name, role, limit in limits if shares else limits[:1]:
        console.print(
            f"{name}limit of memory of a container or unit: {math.ceil(limit / 2**20):,} MiB; "
            f"time from SIGTERM to the end: at most {stop_s(settings, role):.0f} s",
            soft_wrap=True,
        )
    if settings.near.window.messages > settings.near.segment and settings.near.method == "text":
        most, memory = math.ceil(held.full_disk_limit / 2**20), settings.state.memory
        console.print(
            f"with a full disk, when no segment can be written: {most:,} MiB; judging pauses where one more "
            f"would pass state.memory ({'none' if memory is None else size_text(memory)}) or the limit of "
            "memory, and retention of the input goes on",
            soft_wrap=True,
        )
    console.print(
        f"probes: /healthz answers {START_S:.0f} s after a start at the latest, and fails after "
        f"{alive_s(settings):.0f} s without progress",
        soft_wrap=True,
    )
