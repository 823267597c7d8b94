"""What saving a sieve costs while it judges, and how long a restart takes.

    python -m bench.snapshots [--window 1000000] [--snapshots 4] [--messages 1500000] [--folder DIR]

Generated posts fill the near window. Then the sieve is saved after every `--messages` more (5 minutes at
5,000 a second), in the background, as an index does. Printed are, for each save: the pause, the seconds until
its files are on disk, the bytes written since the one before, and those bytes as a share of the memory of the
messages kept since then. A second process judges the same without saving; the difference of the peaks of
anonymous memory is what saving takes. Last, new processes restore the sieve: with the files in the page
cache, and without.
"""

from __future__ import annotations

import argparse
import io
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import NamedTuple

import numpy as np
import orjson
from fsspec.implementations.local import LocalFileSystem

from bench.machine import machine_line, memory_mib
from twinsieve.pipeline.saved.journal import Journal
from twinsieve.pipeline.saved.manifest import StateFile, decode_files
from twinsieve.pipeline.saved.saved_files import SavedFiles
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.pipeline.tools.generate.stream import generate_columns
from twinsieve.stages.contract import ExactConfig, NearConfig, SieveConfig, SieveStats, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.memory_pages import zeros

_MIB = 1 << 20


def anonymous_bytes() -> int:
    """Anonymous memory of this process that is resident (RssAnon)."""
    return round(memory_mib("self", "RssAnon") * _MIB)


class Peak:
    """The most anonymous memory since the beginning, looked at every 10 ms. A context manager."""

    def __init__(self) -> None:
        self.bytes = 0
        self._end = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._end.wait(0.01):
            self.bytes = max(self.bytes, anonymous_bytes())

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


def config_of(window: int) -> SieveConfig:
    """The default configuration with this near window."""
    return SieveConfig(ExactConfig(), NearConfig(window=Window(window)), scheme_id="bench")


def storage_in(folder: str) -> Storage:
    """The folder of the saved sieve."""
    return Storage((LocalFileSystem(), folder))


class Save(NamedTuple):
    """A save.

    kept: messages kept since the save before; stats: of the sieve
    written: bytes that were written since then, with `small`, those of the manifest; files: all that it names
    """

    kept: int
    stats: SieveStats
    pause_s: float
    seconds: float
    written: int
    small: int
    files: list[StateFile]


class Saver:
    """Saves a sieve into a folder in the background."""

    def __init__(self, sieve: BatchSieve, folder: str, window: int) -> None:
        self._sieve = sieve
        self._folder = Path(folder)
        self._journal = Journal(storage_in(folder), "bench", window)
        sieve.on_kept = self._journal.take
        self._background = ThreadPoolExecutor(1)
        self._written = 0
        self._kept = 0

    def save(self) -> Future[Save]:
        """Begin a save."""
        began = perf_counter()
        frozen = self._sieve.freeze(self._journal.parts)
        cut = self._journal.cut(frozen)
        pause_s = perf_counter() - began
        stats = self._sieve.stats()
        kept, self._kept = stats.kept - self._kept, stats.kept

        def write() -> Save:
            files = self._journal.write(cut)
            small = io.BytesIO()
            frozen.write(small)
            (self._folder / "state").write_bytes(small.getvalue())
            (self._folder / "files").write_bytes(orjson.dumps([list(file) for file in files]))
            self._journal.announced(files, {file.name for file in files})
            new = self._journal.written - self._written + small.tell()
            self._written = self._journal.written
            return Save(kept, stats, pause_s, perf_counter() - began, new, small.tell(), files)

        return self._background.submit(write)


def saved_files(folder: str) -> list[StateFile]:
    """The files of the last save."""
    return decode_files(orjson.loads((Path(folder) / "files").read_bytes()))


class Restored(NamedTuple):
    """A restart. more: anonymous memory at its peak beyond that of before"""

    sieve: BatchSieve
    seconds: float
    more: int


def restored(folder: str, config: SieveConfig) -> Restored:
    """Restore the sieve of the last save."""
    began, before = perf_counter(), anonymous_bytes()
    with Peak() as peak, SavedFiles(storage_in(folder), saved_files(folder), "bench") as parts:
        stream = io.BytesIO((Path(folder) / "state").read_bytes())
        sieve = BatchSieve.load(stream, config, parts=parts)
    return Restored(sieve, perf_counter() - began, peak.bytes - before)


def run_steps(module: str, steps: Sequence[str], folder: str | None) -> None:
    """Run each step of a measurement in a process of its own. folder: of the saves; None: a temporary one"""
    with tempfile.TemporaryDirectory() as temporary:
        for step in steps:
            arguments = [*sys.argv[1:], "--step", step, "--folder", folder or temporary]
            subprocess.run([sys.executable, "-m", module, *arguments], check=True)


def _line(save: Save) -> str:
    stats = save.stats
    of_sieve = save.written / max(1.0, save.kept * stats.bytes_used / stats.held)
    size = sum(file.size for file in save.files) / stats.held
    return (
        f"{stats.kept:>12,} {1000 * save.pause_s:>9.1f} {save.seconds:>9.2f} {save.written / _MIB:>13.1f} "
        f"{of_sieve:>9.2f} {len(save.files):>6} {size:>12.0f}"
    )


def judge(window: int, snapshots: int, messages: int, folder: str | None) -> None:
    """Fill the window, then judge and save; without a folder, judge only."""
    scheme, sieve = Scheme(SchemeConfig()), BatchSieve(config_of(window))
    saver = None if folder is None else Saver(sieve, folder, window)
    if saver is not None:
        head = ("kept", "pause ms", "seconds", "MiB written", "of sieve", "files", "B a kept one")
        print("{:>12} {:>9} {:>9} {:>13} {:>9} {:>6} {:>12}".format(*head), flush=True)
    left, done, running, seconds, rows = messages, 0, None, 0.0, 0
    with Peak() as peak:
        for posts in generate_columns(3 * window + (snapshots + 1) * messages, seed=1):
            batch = batch_of(*scheme.read(posts.texts))
            began = perf_counter()
            sieve.judge(batch)
            seconds, rows = seconds + perf_counter() - began, rows + len(batch)
            if sieve.stats().held < window:
                continue
            left -= len(batch)
            if left > 0:
                continue
            left, done = messages, done + 1
            if saver is not None:
                if running is not None:
                    print(_line(running.result()), flush=True)
                running = saver.save()
            if done > snapshots:
                break
        if running is not None:
            print(_line(running.result()), flush=True)
    held, how = sieve.stats().bytes_used, "saving" if folder else "not saving"
    print(
        f"{how}: peak of anonymous memory {peak.bytes / _MIB:,.0f} MiB, sieve {held / _MIB:,.0f} MiB "
        f"({held / sieve.stats().held:.0f} B a kept message), {1e6 * seconds / rows:.2f} µs a message",
        flush=True,
    )


def touched(size: int) -> float:
    """Seconds in which the system gives this much memory. A virtual machine may have to get it from its host,
    which takes far longer than for memory that it had before."""
    began = perf_counter()
    zeros(size, np.uint8, small_bytes=0)[:: mmap.PAGESIZE] = 1
    return perf_counter() - began


def restore(window: int, folder: str, *, cached: bool) -> None:
    """Restore the saved sieve, and print how long it takes."""
    files = saved_files(folder)
    if not cached:
        for file in files:
            descriptor = os.open(Path(folder) / file.name, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
    began = perf_counter()
    if not cached:
        for file in files:
            with (Path(folder) / file.name).open("rb", buffering=0) as stream:
                while stream.read(4 * _MIB):
                    pass
            with (Path(folder) / file.name).open("rb") as stream:
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    read_s = perf_counter() - began
    touch_s = touched(3 * sum(file.size for file in files) // 2)
    again = restored(folder, config_of(window))
    took_s, held = again.seconds, again.sieve.stats().held
    where = "in the page cache" if cached else f"not in the page cache (reading them once: {read_s:.1f} s)"
    print(
        f"restart with {held:,} kept, files {where}: {took_s:.1f} s, "
        f"{1e6 * took_s / max(1, held):.2f} µs a kept message, anonymous memory {again.more / _MIB:,.0f} MiB "
        f"more, sieve {again.sieve.stats().bytes_used / _MIB:,.0f} MiB; "
        f"before, that the machine gave as much memory took {touch_s:.1f} s",
        flush=True,
    )


def main() -> None:
    """Prints machine, the table of saves, peaks and restarts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--window", type=int, default=1_000_000)
    parser.add_argument("--snapshots", type=int, default=4)
    parser.add_argument("--messages", type=int, default=1_500_000)
    parser.add_argument("--folder", help="where the sieve is saved; default: a temporary folder")
    parser.add_argument("--step", choices=["saving", "judging", "cached", "uncached"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step in ("saving", "judging"):
        folder = options.folder if options.step == "saving" else None
        judge(options.window, options.snapshots, options.messages, folder)
        return
    if options.step is not None:
        restore(options.window, options.folder, cached=options.step == "cached")
        return
    print(machine_line())
    print(
        f"input: generated posts, seed 1; window {options.window:,}, saved every {options.messages:,}",
        flush=True,
    )
    run_steps("bench.snapshots", ("saving", "judging", "cached", "uncached"), options.folder)


if __name__ == "__main__":
    main()
