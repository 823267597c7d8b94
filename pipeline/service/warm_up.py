"""Kernels compiled in several processes at once, before they are needed.

One process compiles for half a minute. Parts that do not need each other (`stages/judge/kernel_parts.py`) are
given to processes that are started for that, never forked: a program that embeds twinsieve may have threads.
They share the folder of compiled kernels, from which each loads what another has compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TextIO

from twinsieve.stages import compiled
from twinsieve.stages.judge.kernel_parts import PARTS, Part

_PACKAGE = Path(compiled.__file__).resolve().parent.parent
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_LOOK_S = 0.2

LAST_PART = "verdicts"
"""Needs most of the others."""


class CompileProgress(NamedTuple):
    """How far the compiling is.

    done, parts: how many parts are compiled, of how many; processes: how many compile
    name, seconds: of the part that was compiled last; "" and 0 at the beginning
    """

    done: int
    parts: int
    name: str
    seconds: float
    processes: int


Told = Callable[[CompileProgress], None]


def tell_nobody(_progress: CompileProgress) -> None:
    """For whoever wants to hear nothing."""


def _never() -> bool:
    return False


def missing_parts() -> list[Part]:
    """The parts that no process has compiled yet, for these sources and this CPU."""
    return [part for part in PARTS if compiled.kept_in(part.name) is None]


def warm_up(
    told: Told = tell_nobody, *, processes: int | None = None, stopped: Callable[[], bool] = _never
) -> bool:
    """Whether all kernels are compiled now and kept; what is missing was compiled, in the order of PARTS.

    told: hears of the beginning and of each part; is not called where nothing is missing
    processes: how many compile at once, one for each core by default. With one, and where kernels cannot be
        kept (one warning says so), this process compiles by itself
    stopped: asked several times a second; once it says True, what is under way is given up

    A process that ends before its time leaves its part to whoever needs the kernels, who then compiles them.
    """
    missing = missing_parts()
    if not missing:
        return True
    count = min(processes or cores(), len(missing))
    told(CompileProgress(0, len(missing), "", 0.0, count))
    if not compiled.writable() or count == 1 or not sys.executable:
        _compile_here(missing, told, stopped)
    else:
        _Crew(missing, told).work(count, stopped)
    return not missing_parts()


def _compile_here(missing: Sequence[Part], told: Told, stopped: Callable[[], bool]) -> None:
    for number, part in enumerate(missing, start=1):
        if stopped():
            return
        began_s = time.perf_counter()
        compile_part(part)
        told(CompileProgress(number, len(missing), part.name, time.perf_counter() - began_s, 1))


def compile_part(part: Part) -> None:
    """Compile a part and say so in the folder."""
    part.compile()
    compiled.mark_as_ready(part.name)


def serve(asked: TextIO, answers: TextIO) -> None:
    """Compile each part that a line names, answer with its name; until there are no more lines."""
    parts = {part.name: part for part in PARTS}
    for line in asked:
        compile_part(parts[line.strip()])
        print(line.strip(), file=answers, flush=True)


class _Crew:
    """Processes that take the parts one after another; a thread speaks for each of them."""

    def __init__(self, missing: Sequence[Part], told: Told) -> None:
        self._told = told
        self._waiting = list(missing)
        self._parts = len(missing)
        self._under_way: set[str] = set()
        self._done = 0
        self._count = 0
        self._changed = threading.Condition()
        self._over = False

    def work(self, count: int, stopped: Callable[[], bool]) -> None:
        """Return when every part is compiled, given up, or `stopped` says so."""
        self._count = count
        processes = [_worker() for _ in range(count)]
        threads = [threading.Thread(target=self._lead, args=(one,), daemon=True) for one in processes]
        try:
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads) and not stopped():
                threads[0].join(_LOOK_S) if threads[0].is_alive() else threads[-1].join(_LOOK_S)
        finally:
            self._end()
            for process in processes:
                process.kill()
                process.wait()
            for thread in threads:
                thread.join()
            for process in processes:
                for pipe in (process.stdin, process.stdout):
                    with suppress(OSError):
                        if pipe is not None:
                            pipe.close()

    def _lead(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        while (part := self._take()) is not None:
            began_s = time.perf_counter()
            answer = ""
            with suppress(OSError):
                process.stdin.write(f"{part.name}\n")
                process.stdin.flush()
                answer = process.stdout.readline().strip()
            self._finish(part, answer == part.name, time.perf_counter() - began_s)
            if answer != part.name:
                return

    def _take(self) -> Part | None:
        """The next part whose callees are compiled; waits for one; None when there is nothing left to do."""
        with self._changed:
            while not self._over:
                busy = self._under_way | {part.name for part in self._waiting}
                for part in self._waiting:
                    if not busy & set(part.after):
                        self._waiting.remove(part)
                        self._under_way.add(part.name)
                        return part
                if not self._waiting:
                    return None
                self._changed.wait()
            return None

    def _finish(self, part: Part, compiled_: bool, seconds: float) -> None:
        with self._changed:
            self._under_way.discard(part.name)
            self._changed.notify_all()
            self._done += compiled_
            if compiled_ and not self._over:
                # Whoever closed stderr wants to hear nothing.
                with suppress(OSError):
                    self._told(CompileProgress(self._done, self._parts, part.name, seconds, self._count))

    def _end(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()


def warm_up_command(*options: str, **variables: str) -> tuple[list[str], dict[str, str]]:
    """Words and environment of a process that runs `warm-up` of this very package, from any folder.

    variables: of the environment, beside those that this process has
    """
    path = os.pathsep.join(filter(None, [str(_PACKAGE), os.environ.get("PYTHONPATH")]))
    words = [sys.executable, "-P", "-m", "twinsieve", "warm-up", *options]
    return words, {**os.environ, "PYTHONPATH": path, **variables}


def _worker() -> subprocess.Popen[str]:
    """A process that serves."""
    words, environment = warm_up_command("--serve")
    return subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


def cores() -> int:
    """Cores that this process may use: by its affinity, and by the limit of its control group."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, _, period = _QUOTA.read_text().partition(" ")
        limit = -(-int(quota) // int(period))
    except (OSError, ValueError):
        return allowed
    return max(1, min(allowed, limit))
