"""A near window larger than memory: time to judge a message, memory, and recall by age.

    python -m bench.large_window [--window 50000000] [--segment 16000000] [--memory 8] [--threads 2]

One process judges generated posts until the window is full; another one generates them and makes the
fingerprints. Sealed segments lie in files without a name (`--scratch`). One post in 500 with a body of at
least 40 characters comes back once with one character changed, at a random later time; differences are off,
so each such copy should be dropped. Every few million kept messages the other process is stopped, and the
next 24 batches are judged with nothing beside. Printed are medians of these: the time to judge a message, and
in it that of phase one (look-ups and comparisons, by `near.threads` threads) and of the rest;
the time of all processors, which waits for no disk; the number of segments; the memory of the process that is
anonymous, and what is in memory of mapped files; bytes of a kept message in a sealed segment that look-ups
read, and all; what was read from the disk. Then the recall by age: the share of the copies that were dropped,
of those whose original was kept and is still in the window.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
from collections.abc import Callable, Iterator
from multiprocessing import Process, Queue
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bench.machine import machine_line, memory_mib
from bench.recall_by_age import layout_of
from twinsieve.pipeline.saved.segment_files import ScratchSegments
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.pipeline.tools.generate.stream import CHUNK, generate_columns
from twinsieve.stages.contract import (
    MAX_SEGMENT,
    OFF,
    BandLayout,
    Batch,
    Differences,
    ExactConfig,
    Kind,
    NearConfig,
    SieveConfig,
    Verdicts,
    Window,
)
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

_ONE_IN = 500
_LEAST_LENGTH = 40
"""A layout of four rows misses some copies of shorter bodies, whatever their age."""
_BATCHES_AHEAD = 8
_QUIET_BATCHES = 24
_TENTHS = 10


class Posted(NamedTuple):
    """A batch, and which of its rows belong to pairs.

    originals, copies: int64[n, 2], (row, number of the pair)
    """

    batch: Batch
    originals: NDArray[np.int64]
    copies: NDArray[np.int64]


def changed(text: str, rng: random.Random) -> str:
    """The text with one character exchanged."""
    place = rng.randrange(len(text))
    return text[:place] + chr(0x4E00 + rng.randrange(20_000)) + text[place + 1 :]


def posted(messages: int, layout: BandLayout, seed: int) -> Iterator[Posted]:
    """Generated posts, and copies of some of them among these."""
    rng, scheme = random.Random(seed), Scheme(SchemeConfig(layout=layout))
    due: dict[int, list[tuple[int, str]]] = {}
    pairs = 0
    for number, posts in enumerate(generate_columns(messages, seed)):
        come = due.pop(number, [])
        texts = [*posts.texts, *(text for _, text in come)]
        bodies, fingerprints = scheme.read(texts)
        copies = [(len(posts.texts) + place, pair) for place, (pair, _) in enumerate(come)]
        originals = []
        for row in np.flatnonzero(bodies.body_lengths[: len(posts.texts)] >= _LEAST_LENGTH).tolist():
            if rng.random() < 1 / _ONE_IN:
                chunk = rng.randrange(number + 1, messages // CHUNK + 2)
                due.setdefault(chunk, []).append((pairs, changed(texts[row], rng)))
                originals.append((row, pairs))
                pairs += 1
        batch = batch_of(bodies, fingerprints)
        yield Posted(batch, *(np.array(each, np.int64).reshape(-1, 2) for each in (originals, copies)))


def _send(queue: Queue[Any], messages: int, layout: BandLayout, seed: int) -> None:
    for each in posted(messages, layout, seed):
        queue.put(each)


def read_mib() -> float:
    """MiB that this process has caused to be read from a disk."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) / 2**20 for line in lines if line.startswith("read_bytes:"))


class Recall:
    """Counts the copies that are found, by the age of their originals in tenths of the window."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._kept: dict[int, int] = {}
        self.all = np.zeros(_TENTHS, np.int64)
        self.found = np.zeros(_TENTHS, np.int64)

    def note(self, posted: Posted, kinds: NDArray[np.uint8], before: int) -> None:
        """before: number of messages kept before the batch"""
        numbers = before + np.cumsum(kinds == Kind.UNIQUE) - 1
        for row, pair in posted.originals.tolist():
            if kinds[row] == Kind.UNIQUE:
                self._kept[pair] = int(numbers[row])
        for row, pair in posted.copies.tolist():
            if pair not in self._kept:
                continue
            age = int(numbers[row]) - self._kept.pop(pair)
            if age < self._window:
                tenth = age * _TENTHS // self._window
                self.all[tenth] += 1
                self.found[tenth] += kinds[row] != Kind.UNIQUE


class StepTimes:
    """How long the steps of judging took, of each batch since the last `clear`.

    sieve: its method for phase one is replaced by one that takes the time
    """

    def __init__(self, sieve: BatchSieve) -> None:
        self._sieve = sieve
        near: Any = sieve.near
        self._looking_up = 0.0
        near.look_up = self._timed(near.look_up)
        self._rows: list[tuple[float, ...]] = []

    def _timed(self, step: Callable[..., None]) -> Callable[..., None]:
        def timed(*arguments: Any) -> None:
            began = perf_counter()
            step(*arguments)
            self._looking_up += perf_counter() - began

        return timed

    def clear(self) -> None:
        """Begin anew."""
        self._rows = []

    def judge(self, batch: Batch) -> Verdicts:
        """The verdicts on a batch, and note how long they took."""
        self._looking_up = 0.0
        began, cpu_began = perf_counter(), process_time()
        verdicts = self._sieve.judge(batch)
        cpu, whole = process_time() - cpu_began, perf_counter() - began
        parts = (whole, self._looking_up, whole - self._looking_up, cpu)
        self._rows.append(tuple(each / len(batch) for each in parts))
        return verdicts

    @property
    def micros(self) -> list[float]:
        """Medians, µs a message: all; phase one, the rest; all processors"""
        return [1e6 * median(column) for column in zip(*self._rows, strict=True)]


def main() -> None:
    """Prints machine, input, the table and the recall."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--window", type=int, default=50_000_000)
    parser.add_argument("--segment", type=int, default=MAX_SEGMENT)
    parser.add_argument("--memory", type=float, default=8.0, help="state.memory in GiB")
    parser.add_argument("--layout", default="24x4-by_script")
    parser.add_argument("--load", type=float, default=NearConfig().bucket_load, help="near.bucket_load")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--scratch", help="folder for the files of sealed segments")
    parser.add_argument("--every", type=int, default=2_000_000, help="kept messages between two lines")
    options = parser.parse_args()
    layout = layout_of(options.layout)
    print(machine_line())
    print(
        f"input: generated posts, seed 1; window {options.window:,}, segments of {options.segment:,}, "
        f"state.memory {options.memory:g} GiB, layout {options.layout}, bucket load {options.load:g}, "
        f"{options.threads} threads",
        flush=True,
    )
    near = NearConfig(
        window=Window(options.window),
        segment=options.segment,
        memory=int(options.memory * 2**30),
        bucket_load=options.load,
        differences=Differences(OFF),
        threads=options.threads,
    )
    scratch = ScratchSegments("", options.scratch, print)
    sieve = BatchSieve(SieveConfig(ExactConfig(), near, layout=layout))
    sieve.seal_into(scratch.write)
    queue: Queue[Posted] = Queue(_BATCHES_AHEAD)
    sender = Process(target=_send, args=(queue, options.window * 2, layout, 1), daemon=True)
    sender.start()
    recall, asked, stats = Recall(options.window), options.every, sieve.stats()
    steps, quiet, measuring = StepTimes(sieve), list[Posted](), False
    most = 0.0
    head = ("kept", "µs", "phase one", "rest", "µs CPU", "segments", "anonymous MiB", "mapped MiB")
    line = "{:>12} {:>6} {:>9} {:>5} {:>7} {:>9} {:>14} {:>11} {:>6} {:>6} {:>9}"
    print(line.format(*head, "hot B", "all B", "read MiB"), flush=True)
    while stats.kept < options.window:
        if not measuring and stats.kept + _QUIET_BATCHES * CHUNK >= asked:
            measuring = True
            quiet = [queue.get() for _ in range(_QUIET_BATCHES)]
            os.kill(cast("int", sender.pid), signal.SIGSTOP)
            steps.clear()
        given = quiet.pop(0) if quiet else queue.get()
        verdicts = steps.judge(given.batch)
        recall.note(given, verdicts.kinds, stats.kept)
        stats = sieve.stats()
        anonymous = memory_mib("self", "RssAnon")
        most = max(most, anonymous)
        if measuring and not quiet:
            measuring = False
            os.kill(cast("int", sender.pid), signal.SIGCONT)
            asked += options.every
            segments = sieve.near.segments
            hot = [segment.bytes_hot / segment.ring.size for segment in segments.sealed]
            held = sum(segment.bytes_used for segment in segments.all) / stats.held
            print(
                line.format(
                    f"{stats.kept:,}",
                    *(f"{each:.2f}" for each in steps.micros),
                    stats.segments,
                    f"{anonymous:,.0f}",
                    f"{memory_mib('self', 'RssFile'):,.0f}",
                    f"{max(hot, default=0):.0f}",
                    f"{held:.0f}",
                    f"{read_mib():,.0f}",
                ),
                flush=True,
            )
    sender.terminate()
    scratch.close()
    print(f"peak of anonymous memory: {most:,.0f} MiB")
    for tenth, (found, pairs) in enumerate(zip(recall.found, recall.all, strict=True)):
        share = f"{found / pairs:.4f}" if pairs else "none"
        print(f"age {tenth / 10:.1f} to {(tenth + 1) / 10:.1f} of the window: {share} of {pairs:,} copies")
    print(f"all ages: {recall.found.sum() / max(1, recall.all.sum()):.4f} of {recall.all.sum():,} copies")


if __name__ == "__main__":
    main()
