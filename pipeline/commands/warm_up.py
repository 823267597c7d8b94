"""`twinsieve warm-up`, and what other commands show while they compile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from twinsieve.pipeline.commands.terminal import examples, say_error, talk
from twinsieve.stages.errors import UsageError


@click.command("warm-up", epilog=examples("twinsieve warm-up", "twinsieve warm-up -q"))
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def command(quiet: bool) -> int:
    """Compile all kernels now, so that later starts are fast: for images, CI and new hosts.

    They are stored in $NUMBA_CACHE_DIR, else in $XDG_CACHE_HOME/twinsieve or ~/.cache/twinsieve.
    """
    from twinsieve.pipeline.service.warm_up import ABOUT, warm_up
    from twinsieve.stages import kernel
    from twinsieve.stages.kernel import folder

    if kernel.config.DISABLE_JIT:
        raise UsageError("NUMBA_DISABLE_JIT is set, so nothing is compiled; unset it")
    if not folder.is_usable():
        return 1
    began_s = time.perf_counter()

    def say(done: int, calls: int) -> None:
        if not quiet:
            say_error(f"  {done} of {calls} parts ({time.perf_counter() - began_s:.0f} s)" if done else ABOUT)

    if not warm_up(say):
        return 1
    if not quiet:
        say_error(f"all kernels are in {folder.path()} ({time.perf_counter() - began_s:.1f} s)")
    return 0


@contextmanager
def loading(quiet: bool = False) -> Iterator[None]:
    """Context manager: compile missing kernels before the block; a terminal shows "loading" until its end."""
    from twinsieve.pipeline.service.warm_up import ABOUT, COSTS, warm_up

    console = None if quiet else talk()
    if console is None or not console.is_terminal:
        warm_up(lambda done, _all: None if quiet or done else say_error(COSTS))
        yield
        return
    with console.status("loading") as status:
        warm_up(lambda done, calls: status.update(f"{ABOUT}: {done} of {calls} parts"))
        status.update("loading")
        yield
