"""Compile the kernels in several processes at once, before they are needed.

A single process takes one to two minutes. So parts that do not need each other are compiled in separate
processes (`stages/judge/kernel_parts.py`). These are started, never forked, because a program that embeds
twinsieve may have threads. All share the folder of compiled kernels, so each loads the parts that another has
compiled.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TextIO

from twinsieve.pipeline.basics.processors import cores
from twinsieve.stages import compiled
from twinsieve.stages.kernel import interpret

if TYPE_CHECKING:
    from twinsieve.stages.judge.kernel_parts import Part

_PACKAGE = Path(compiled.__file__).resolve().parent.parent
_POLL_S = 0.2

ABOUT = "compiling kernels, once for each version and kind of CPU"
COSTS = f"{ABOUT}: one to two minutes of one core (`twinsieve warm-up` does it beforehand)"
"""What a user is told who has to wait for kernels."""

LAST_PART = "verdicts"
"""Name of the part that depends on most other parts."""


_ALL_PARTS = "all"
"""The folder of kernels is marked with this name once it has all parts, so that a start need not import
them."""


class CompileProgress(NamedTuple):
    """Progress of the compilation.

    done, parts: number of compiled parts, and of all parts to compile; processes: number of processes
    name, seconds: name and compile time of the last compiled part; "" and 0 at the beginning
    """

    done: int
    parts: int
    name: str
    seconds: float
    processes: int


Report = Callable[[CompileProgress], None]


def ignore_progress(_progress: CompileProgress) -> None:
    """Ignore the progress."""


def _never() -> bool:
    return False


def missing_parts() -> list[Part]:
    """The parts that are not compiled yet for this version of the sources and this CPU."""
    if compiled.kept_in(_ALL_PARTS) is not None:
        return []
    from twinsieve.stages.judge.kernel_parts import PARTS

    return [part for part in PARTS if compiled.kept_in(part.name) is None]


def warm_up(
    report: Report = ignore_progress, *, processes: int | None = None, stopped: Callable[[], bool] = _never
) -> bool:
    """Whether all kernels are stored now. Missing parts are compiled first, in the order of PARTS, unless
    NUMBA_DISABLE_JIT is set.

    report: called at the beginning and after each part; not called if no part is missing
    processes: number of processes that compile at once (default: one per core). This process itself compiles
        if the number is 1, or if it cannot write to the folder of kernels (which is logged once)
    stopped: called several times a second; once it returns True, unfinished parts are abandoned

    A part whose process ends early is compiled later, by the first process that needs its kernels.
    """
    if not compiled.compiles():
        return False
    missing = missing_parts()
    if missing:
        count = min(processes or cores(), len(missing))
        report(CompileProgress(0, len(missing), "", 0.0, count))
        if _others_compile(len(missing), processes):
            _compile_in(count, missing, report, stopped)
        else:
            _compile_here(missing, report, stopped)
        if missing_parts():
            return False
    _mark_all()
    return True


def _mark_all() -> None:
    """Mark the folder for new kernels, if it has all parts; one in the package was marked when made."""
    is_marked = compiled.kept_in(_ALL_PARTS) is not None
    if not is_marked and compiled.kept_in(LAST_PART) == compiled.folders().write:
        compiled.mark_as_ready(_ALL_PARTS)


class Compiling:
    """Other processes compile the kernels while Python interprets them in this one, until `wait`.

    A context manager: at the end of its block, unfinished parts are abandoned.
    report: as of `warm_up`, called by another thread
    """

    def __init__(self, report: Report = ignore_progress) -> None:
        self._abandoned = threading.Event()
        self._thread = threading.Thread(
            target=lambda: warm_up(report, stopped=self._abandoned.is_set), name="twinsieve-compiling"
        )

    @staticmethod
    def is_possible() -> bool:
        """Whether kernels are missing, and other processes can compile them."""
        return compiled.compiles() and _others_compile(len(missing_parts()))

    @property
    def is_done(self) -> bool:
        """Whether no process compiles any more."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Return when everything is compiled, and let kernels run as machine code from then on."""
        self._thread.join()
        interpret(False)

    def __enter__(self) -> Self:
        interpret(True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._abandoned.set()
        self.wait()


def _others_compile(parts: int, processes: int | None = None) -> bool:
    """Whether processes of their own compile this many parts. processes: as of `warm_up`"""
    return min(processes or cores(), parts) > 1 and bool(sys.executable) and compiled.writable()


def _compile_here(missing: Sequence[Part], report: Report, stopped: Callable[[], bool]) -> None:
    for number, part in enumerate(missing, start=1):
        if stopped():
            return
        began_s = time.perf_counter()
        compile_part(part)
        report(CompileProgress(number, len(missing), part.name, time.perf_counter() - began_s, 1))


def compile_part(part: Part) -> None:
    """Compile a part and mark it as ready in the folder of kernels."""
    part.compile()
    compiled.mark_as_ready(part.name)


def serve(requests: TextIO, answers: TextIO) -> None:
    """Compile each part whose name is a line of `requests`, then write its name to `answers`; return at the
    end of `requests`."""
    from twinsieve.stages.judge.kernel_parts import PARTS

    parts = {part.name: part for part in PARTS}
    for line in requests:
        compile_part(parts[line.strip()])
        print(line.strip(), file=answers, flush=True)


def _compile_in(count: int, missing: Sequence[Part], report: Report, stopped: Callable[[], bool]) -> None:
    """Give each part to an idle process as soon as the parts it needs are compiled. Return when all parts are
    compiled, when no process is left, or when `stopped` returns True."""
    waiting, done = list(missing), 0
    under_way: dict[subprocess.Popen[str], tuple[Part, float]] = {}
    processes = [_worker() for _ in range(count)]
    idle = list(processes)
    try:
        while not stopped():
            unfinished = {part.name for part in [*waiting, *(part for part, _ in under_way.values())]}
            for part in [part for part in waiting if not unfinished & set(part.after)][: len(idle)]:
                waiting.remove(part)
                process = idle.pop()
                under_way[process] = part, time.perf_counter()
                with suppress(OSError):  # a process that died is recognized below, by the end of its output
                    print(part.name, file=process.stdin, flush=True)
            if not under_way:
                return
            answers = {process.stdout: process for process in under_way if process.stdout is not None}
            for answer in select.select([*answers], [], [], _POLL_S)[0]:
                process = answers[answer]
                part, began_s = under_way.pop(process)
                if answer.readline().strip() != part.name:
                    continue
                done += 1
                idle.append(process)
                seconds = time.perf_counter() - began_s
                with suppress(OSError):  # stderr may be closed
                    report(CompileProgress(done, len(missing), part.name, seconds, count))
    finally:
        for process in processes:
            process.kill()
            with suppress(OSError):
                process.communicate()


def warm_up_command(*options: str, **variables: str) -> tuple[list[str], dict[str, str]]:
    """Command line and environment that run `warm-up` of this copy of the package, from any folder.

    variables: environment variables to add to those of this process
    """
    path = os.pathsep.join(filter(None, [str(_PACKAGE), os.environ.get("PYTHONPATH")]))
    words = [sys.executable, "-P", "-m", "twinsieve", "warm-up", *options]
    return words, {**os.environ, "PYTHONPATH": path, **variables}


def _worker() -> subprocess.Popen[str]:
    """A new process that compiles the parts whose names it reads from stdin (`serve`)."""
    words, environment = warm_up_command("--serve")
    return subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
