"""`twinsieve dedup`."""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, get_args

import click

from twinsieve.pipeline.commands.options import (
    FILE_NAME,
    FormatFlags,
    SettingsFlags,
    format_options,
    gathered,
    settings_options,
)
from twinsieve.pipeline.commands.terminal import examples as help_examples
from twinsieve.pipeline.commands.terminal import say_error, talk
from twinsieve.pipeline.dedup import Keep, Wanted
from twinsieve.pipeline.files import SignalledError

if TYPE_CHECKING:
    from twinsieve.pipeline.dedup.job import OnProgress

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command(
    "dedup",
    epilog=help_examples(
        "twinsieve dedup posts.jsonl -o unique.jsonl --duplicates dropped.jsonl",
        "twinsieve dedup posts/ -o unique/ --duplicates dropped.jsonl",
        "twinsieve dedup posts.jsonl --mark -o marked.jsonl --clusters clusters.jsonl",
        "twinsieve dedup posts.csv --text-field text --similarity 0.8 -o unique.csv.gz",
        "twinsieve dedup posts.jsonl --keep longest -o unique.jsonl --clusters clusters.jsonl",
        "twinsieve dedup monday.jsonl -o monday.unique.jsonl --state window.state",
        "twinsieve dedup posts.jsonl --kept-apart apart.jsonl -o unique.jsonl",
        "twinsieve dedup posts.jsonl --set near.window.age=24h --strict > unique.jsonl",
    ),
)
@click.argument("inputs", nargs=-1, type=FILE_NAME, metavar="[INPUT]...")
@settings_options
@click.option(
    "-o",
    "--output",
    default="-",
    type=FILE_NAME,
    help="Kept rows, unchanged (stdout); FOLDER/ gets one file for each input.",
)
@click.option("--duplicates", type=FILE_NAME, help="Dropped rows and their leaders, as JSON lines.")
@click.option("--dead-letter", type=FILE_NAME, help="Rows that could not be read, as JSON lines.")
@click.option(
    "--clusters",
    type=FILE_NAME,
    help="Each kept row with the rows dropped for it, as JSON lines; held in memory until the end.",
)
@click.option(
    "--kept-apart",
    type=FILE_NAME,
    help="Rows that are kept although they are similar to a kept row, with the reason, as JSON lines.",
)
@click.option("--mark", is_flag=True, help="Write all rows, with the verdict added to each.")
@click.option(
    "--keep",
    type=click.Choice(get_args(Keep)),
    default="first",
    help="The row of each cluster to write (first); none: no row that has a duplicate. All but first read "
    "the files twice and need 9 bytes of memory a row, longest 13.",
)
@click.option("--stats", type=FILE_NAME, help="Counts, and microseconds for each step, as JSON.")
@click.option(
    "--state",
    type=FILE_NAME,
    help="Continue from the state in this FOLDER, if it exists, and save the new state there.",
)
@format_options("Format of inputs and output (by file name).")
@click.option("--strict", is_flag=True, help="Fail at the first row that cannot be read.")
@click.option(
    "--max-unreadable",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Fail if a larger share of the rows cannot be read (0.01; no limit with --dead-letter or --mark).",
)
@click.option(
    "--examples",
    default=0,
    metavar="N",
    type=click.IntRange(0, 100),
    help="Show N dropped rows beside their leaders; with --kept-apart also one row that was kept apart.",
)
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="Show no progress and no summary; still show unreadable rows and --examples.",
)
@gathered("wanted", Wanted)
def command(
    inputs: tuple[str, ...],
    wanted: Wanted,
    spelt: FormatFlags,
    strict: bool,
    max_unreadable: float | None,
    quiet: bool,
    flags: SettingsFlags,
) -> None:
    """Write the unique messages of INPUTs (`-`: stdin) in order; drop exact and near duplicates.

    Kept rows are written as they came in, in the format of the inputs (--format). Only JSON arrays and
    indented JSON (.json) are written as JSON lines, or as an array if the name of the output ends in .json.
    Reads files compressed with gzip, zstd, bzip2 or xz; compresses outputs whose names end in .gz, .zst, .bz2
    or .xz. Output files appear when the run is complete; a stream gets each row at once. A folder means all
    files below it whose ending is known, a quoted pattern all files that match, in name order; hidden files
    and outputs are left out. Addresses such as s3://bucket/posts.jsonl.gz are read with fsspec. Where windows
    have an age, a row with a time far ahead of the rows before it moves them only with a second one.
    """
    started = time.perf_counter()
    from twinsieve.pipeline.commands.warm_up import loading
    from twinsieve.pipeline.dedup.job import Dedup, Job
    from twinsieve.pipeline.files.endings import (
        refuse_empty_names,
        refuse_endings_of_reports,
        refuse_output_ending,
    )
    from twinsieve.pipeline.files.expand import expand, is_folder, outputs_in
    from twinsieve.pipeline.files.unreadable_rows import unreadable_line
    from twinsieve.stages.errors import shown

    if strict and max_unreadable is not None:
        raise click.UsageError("--strict is --max-unreadable 0; give one of the two")
    settings = flags.settings(on_files=True)
    refuse_empty_names(list(inputs))
    inputs_ = expand(list(inputs) or ["-"], [*wanted.outputs().values(), wanted.state])
    names, to_folder = inputs_.names, is_folder(wanted.output)
    outputs = outputs_in(wanted.output, inputs_) if to_folder else []
    format_ = spelt.format_of(names, settings)
    is_given = spelt.form is not None or spelt.delimiter is not None or settings.input.encoding != "json"
    if not to_folder:
        refuse_output_ending(wanted.output, format_, given=is_given)
    refuse_endings_of_reports(wanted.reports())
    typed = "-" in names and sys.stdin is not None and sys.stdin.isatty()
    if typed and not quiet:
        say_error(f"reading {format_.title} from this terminal; end them with Ctrl-D, or name a file")
    job = Job(names, format_, wanted, flags.config, 0.0 if strict else max_unreadable, outputs)
    if not quiet:
        for line in inputs_.lines:
            say_error(line)
    for name, count in Counter(names).items():
        if count > 1:
            say_error(f"{shown(name)}: is named {count:,} times; its rows are read as often")
    with _stopped_by_signals() as signals, ExitStack() as stack:
        with loading(quiet):
            dedup = stack.enter_context(Dedup(job, settings, int(time.time() * 1000)))
            dedup.warm_up()
        signals.interrupted = dedup.interrupted
        dedup.summary.seconds["start"] = time.perf_counter() - started
        with _progress(quiet or typed) as progress:
            summary = dedup.run(progress, before_placing=signals.no_more, stop=signals.stop, warn=say_error)
    if wanted.examples:
        from twinsieve.pipeline.commands.terminal import apart_panel, dropped_panel

        console = talk()
        for example in summary.examples.chosen():
            console.print(dropped_panel(example), soft_wrap=True)
        for example in summary.examples.apart(summary.kept_apart):
            console.print(apart_panel(example), soft_wrap=True)
    if not quiet:
        for line in dedup.choices:
            say_error(line)
        from twinsieve.pipeline.dedup.report import age_lines, bad_times_line, jumps_line, summary_table

        talk().print(summary_table(summary, dedup.sieve_stats()))
        for line in age_lines(summary):
            say_error(line)
        if summary.bad_times:
            say_error(bad_times_line(summary))
        if summary.jumps and dedup.reach_ms is not None:
            say_error(jumps_line(summary, dedup.reach_ms))
        if not summary.rows:
            empty = shown(names[0]) if len(names) == 1 else f"all {len(names):,} inputs"
            say_error(f"{'stdin' if empty == '-' else empty}: no rows, so nothing was judged")
    for name in dedup.repeated:
        say_error(f"{name}: an earlier run on {wanted.state} read this content; all its rows are dropped")
    if wanted.duplicates is not None and summary.leaders_unknown:
        say_error(
            f"{wanted.duplicates}: {summary.leaders_unknown:,} of {summary.explained:,} duplicates "
            f"name a leader without text and id: earlier runs on {wanted.state} kept none; "
            "they are kept since --duplicates was given"
        )
    if summary.keyless:
        from twinsieve.pipeline.dedup.report import keyless_line

        say_error(keyless_line(summary, settings.exact.fields))
    if summary.first_unreadable is not None:
        first, dead_letter = summary.first_unreadable, wanted.dead_letter
        say_error(unreadable_line(summary.unreadable, summary.rows, first, dead_letter))
    if dedup.stopped is not None:
        raise SignalledError(dedup.stopped_line(dedup.stopped), signals.number)


@contextmanager
def _progress(quiet: bool) -> Iterator[OnProgress | None]:
    """Context manager with a function that updates a progress bar; None if there is no bar: if `quiet`, or if
    stderr is not a terminal."""
    console = None if quiet else talk()
    if console is None or not console.is_terminal:
        yield None
        return
    from rich import progress

    columns = (
        progress.SpinnerColumn(),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TextColumn(
            "{task.fields[rows]:,} rows  {task.fields[rate]:,}/s  {task.fields[share]:.1%} dropped"
        ),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(*columns, console=console, refresh_per_second=4, transient=True) as bar:
        task = bar.add_task("", total=None, rows=0, rate=0, share=0.0)
        began = time.perf_counter()

        def show(rows: int, dropped: int, done: float | None) -> None:
            seconds = max(time.perf_counter() - began, 1e-9)
            bar.update(
                task,
                total=None if done is None else 1.0,
                completed=done or 0.0,
                rows=rows,
                rate=round(rows / seconds),
                share=dropped / max(rows, 1),
            )

        yield show


class _Signals:
    """Handles Ctrl-C, SIGTERM and SIGHUP (the terminal was closed).

    The first signal stops the run cleanly if the run can do that now (`stop`), otherwise at once. A second
    signal always stops it at once. After `no_more` signals are ignored, because the outputs are getting their
    names and all of them must get one.
    """

    def __init__(self) -> None:
        from twinsieve.pipeline.dedup.saves import Stop

        self.stop = Stop()
        self.interrupted: Callable[[], str] = lambda: "interrupted; no output was put in place"
        self.number: int = signal.SIGINT
        self._over = False

    def no_more(self) -> None:
        self._over = True

    def handle(self, number: int, _frame: FrameType | None) -> None:
        if self._over:
            return
        self.number = number
        if self.stop.taken and not self.stop.requested:
            self.stop.ask()
        else:
            raise KeyboardInterrupt


@contextmanager
def _stopped_by_signals() -> Iterator[_Signals]:
    """Context manager: during the block `_Signals` handles the signals.

    raises: SignalledError instead of KeyboardInterrupt, for which click would print an empty line
    """
    signals = _Signals()
    # A signal that the process was started to ignore (nohup, a background job of a script) stays ignored.
    caught = [number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    before = [(number, signal.signal(number, signals.handle)) for number in caught]
    woken = signal.set_wakeup_fd(signals.stop.waker, warn_on_full_buffer=False)
    try:
        yield signals
    except KeyboardInterrupt as error:
        raise SignalledError(signals.interrupted(), signals.number) from error
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before:
            signal.signal(number, handler)
        signals.stop.close()
