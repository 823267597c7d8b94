"""`twinsieve warm-up`, and the progress lines of other commands that have to compile."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from twinsieve.pipeline.commands.terminal import examples, say_error, talk
from twinsieve.stages.errors import UsageError

if TYPE_CHECKING:
    from twinsieve.pipeline.service.warm_up import CompileProgress, Compiling


@click.command(
    "warm-up",
    epilog=examples(
        "twinsieve warm-up",
        "twinsieve warm-up -q --processes 1",
    ),
)
@click.option("--processes", type=click.IntRange(1), metavar="N", help="Compile in N processes (all cores).")
@click.option("--portable", is_flag=True, help="Compile for other machines too: x86-64-v3 and a generic CPU.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
@click.option("--serve", is_flag=True, hidden=True)
def command(processes: int | None, portable: bool, quiet: bool, serve: bool) -> int:
    """Compile all kernels now, so that later starts are fast: for images, CI and new hosts.

    They are stored in $NUMBA_CACHE_DIR, else in $XDG_CACHE_HOME/twinsieve or ~/.cache/twinsieve.
    """
    from twinsieve.pipeline.service import warm_up
    from twinsieve.stages import compiled

    if serve:
        warm_up.serve(sys.stdin, sys.stdout)
        return 0
    if not compiled.compiles():
        raise UsageError("NUMBA_DISABLE_JIT is set, so nothing is compiled; unset it")
    if portable:
        return _for_each_cpu(compiled.portable_cpus(), processes, quiet)
    if not compiled.writable():
        return 1
    began_s = time.perf_counter()
    kept = warm_up.warm_up(warm_up.ignore_progress if quiet else _all_lines, processes=processes)
    if not kept:
        return 1
    if not quiet:
        where = compiled.kept_in(warm_up.LAST_PART)
        say_error(f"all kernels are in {where} ({time.perf_counter() - began_s:.1f} s)")
    return 0


def _for_each_cpu(names: list[str], processes: int | None, quiet: bool) -> int:
    """Exit code. Compiles in one process for each CPU name, because Numba takes one name per process."""
    from twinsieve.pipeline.service import warm_up

    options = ["-q"] if quiet else []
    if processes is not None:
        options += ["--processes", str(processes)]
    for name in names:
        if not quiet:
            say_error(f"for {name}:")
        words, environment = warm_up.warm_up_command(*options, NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES="")
        code = subprocess.run(words, env=environment, check=False).returncode
        if code:
            return code
    return 0


@contextmanager
def compiling(quiet: bool = False) -> Iterator[Compiling | None]:
    """Context manager: other processes compile missing kernels meanwhile, and are waited for at its end.

    None if no kernel is missing, or if this process must compile: then use `loading`.
    """
    from twinsieve.pipeline.service import warm_up

    if not warm_up.Compiling.is_possible():
        yield None
        return
    with warm_up.Compiling(warm_up.ignore_progress if quiet else _one_line) as under_way:
        yield under_way
        # What the user wanted is done, so Ctrl-C is no failure from here on.
        with suppress(KeyboardInterrupt):
            if not quiet and not under_way.is_done:
                say_error("all rows are out; kernels are still compiled, for later starts (Ctrl-C ends this)")
            under_way.wait()


@contextmanager
def loading(quiet: bool = False) -> Iterator[None]:
    """Context manager: compile missing kernels before the block; a terminal shows "loading" until its end."""
    from twinsieve.pipeline.service import warm_up

    console = None if quiet else talk()
    if console is None or not console.is_terminal:
        warm_up.warm_up(warm_up.ignore_progress if console is None else _one_line)
        yield
        return
    with console.status("loading") as status:

        def show(progress: CompileProgress) -> None:
            status.update(f"{warm_up.ABOUT}: {progress.done} of {progress.parts} parts")

        warm_up.warm_up(show)
        status.update("loading")
        yield


def _one_line(progress: CompileProgress) -> None:
    if progress.done == 0:
        from twinsieve.pipeline.service.warm_up import COSTS

        say_error(COSTS)


def _all_lines(progress: CompileProgress) -> None:
    if progress.done == 0:
        from twinsieve.pipeline.service.warm_up import ABOUT

        say_error(f"{ABOUT}: {progress.parts} parts in {progress.processes} processes")
    else:
        say_error(f"  {progress.done} of {progress.parts}: {progress.name} ({progress.seconds:.1f} s)")
