"""The cost model of `lint` held against a measurement: bytes by part, and time to judge a message.

    python -m bench.cost_model [--window 100000] [--only NAME]

Each configuration runs in a process of its own. Generated posts, with ids, times and positions as Kafka has
them, fill the near window one and a half times; a state is saved after every quarter of a window. Printed are
what the model says, what was measured, and measured divided by predicted. Bytes are to be within 10 %, times
within 35 % on a quiet machine. A time is CPU time of the one thread that judges.

The constants behind both stand in `pipeline/sizing/estimate.py` and `pipeline/saved/piece_bytes.py`; the
last line of each part is what the bytes of a piece are made of.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import thread_time

import lz4.block
import numpy as np
import orjson

from bench.machine import machine_line
from bench.snapshots import anonymous_bytes, storage_in
from tests.sizing.posts import batches
from twinsieve.pipeline.saved.journal import Journal
from twinsieve.pipeline.saved.kept_file import record_of
from twinsieve.pipeline.saved.manifest import Holds
from twinsieve.pipeline.saved.piece_bytes import piece_bytes
from twinsieve.pipeline.settings.segment_bytes import Texts, hot_bytes, segment_parts
from twinsieve.pipeline.sizing.estimate import Load, estimate, judging_us
from twinsieve.pipeline.tools.generate.stream import SOURCES
from twinsieve.pipeline.wire.column_bytes import arrays_of
from twinsieve.stages.contract import BandLayout, Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.kept_messages import KeptMessages

_MIB = 1 << 20
_SHARE_TIMED = 4
"""The last one of so many batches are timed: the window is full then."""
_SMALL_BATCH = 256
_RECORD = 4096


@dataclass(frozen=True, slots=True)
class Case:
    """A configuration.

    parts: segments that a window is long; joined: posts in one text
    memory: `state.memory`; 0: sealed segments are mapped whole
    """

    parts: int
    layout: BandLayout = BandLayout()  # noqa: RUF009 (frozen)
    joined: int = 1
    memory: int = 0


CASES = {
    "one segment": Case(1),
    "one segment, 24 bands of 4": Case(1, BandLayout(bands=24, rows=4)),
    "one segment, 38 bands": Case(1, BandLayout(bands=38)),
    "one segment, texts of two posts": Case(1, joined=2),
    "one segment, texts of four posts": Case(1, joined=4),
    "four segments, mapped": Case(4),
    "four segments, 24 bands of 4": Case(4, BandLayout(bands=24, rows=4)),
    "four segments, texts of four posts": Case(4, joined=4),
    "four segments, index in memory": Case(4, memory=1 << 40),
    "ten segments, mapped": Case(10),
}


class _Run:
    """Judges, saves and counts. characters: of all kept messages together"""

    def __init__(self, config: SieveConfig, folder: str, saved_every: int) -> None:
        self.sieve = BatchSieve(config)
        self._folder, self._every = folder, saved_every
        self.journal = Journal(storage_in(folder), "bench", config.near.window.messages)
        self.sieve.on_kept = self._take
        self.sieve.seal_into(self.journal.write_segment)
        self.characters, self.saved, self.small = 0, 0, 0
        self.record: list[KeptMessages] = []
        self.times: list[tuple[float, int]] = []

    def _take(self, first: int, messages: KeptMessages) -> None:
        self.characters += int(np.abs(messages.lengths).sum())
        if sum(map(len, self.record)) < _RECORD:
            self.record.append(messages)
        self.journal.take(first, messages)

    def judge(self, batch: Batch) -> None:
        """Judge a batch, and save if a quarter of a window was kept since the last time."""
        began = thread_time()
        self.sieve.judge(batch)
        self.times.append((thread_time() - began, len(batch)))
        if self.sieve.stats().kept // self._every > self.saved:
            self.save()
            self.record.clear()

    def save(self) -> None:
        """Save the sieve, and wait until all is written."""
        self.saved += 1
        self.wait_for_segments()
        frozen = self.sieve.freeze()
        files = self.journal.write(self.journal.cut(frozen))
        small = io.BytesIO()
        frozen.write(small)
        self.small += small.tell() + len(orjson.dumps([list(file) for file in files]))
        self.journal.announced(files, {file.name for file in files})

    def wait_for_segments(self) -> None:
        """Wait until sealed segments are written, and use their files."""
        segments = self.sieve.near.segments
        for segment in segments.sealed:
            segment.wait_for_file()
        segments.use_files()

    @property
    def us(self) -> float:
        """µs a message, of the last batches."""
        whole = [(seconds, rows) for seconds, rows in self.times if rows > _SMALL_BATCH]
        last = whole[-max(3, len(whole) // _SHARE_TIMED) :]
        return median(1e6 * seconds / rows for seconds, rows in last)


def _filled(run: _Run, case: Case, window: int) -> int:
    """Judge until the open segment is full for the last time in one and a half windows. returns: rows"""
    segment = window // case.parts
    goal, rows = window + window // 2 // segment * segment, 0
    if case.parts == 1:
        goal = window + window // 2
    for batch in batches(case.layout, case.joined):
        low = 0
        while low < len(batch):
            left = goal - run.sieve.stats().kept
            if left <= _SMALL_BATCH:
                return rows
            high = len(batch) if left > 2 * len(batch) else low + _SMALL_BATCH
            part = batch.take(np.arange(low, min(high, len(batch))))
            run.judge(part)
            rows, low = rows + len(part), high
    raise AssertionError("the generator ended")


def measure(case: Case, window: int, folder: str) -> None:
    """Print the lines of one configuration."""
    segment = max(1, window // case.parts)
    near = NearConfig(window=Window(window), segment=segment, memory=case.memory)
    config = SieveConfig(ExactConfig(window=Window(10 * window)), near, layout=case.layout, scheme_id="bench")
    warm = BatchSieve(SieveConfig(ExactConfig("none"), NearConfig(window=Window(1_000)), layout=case.layout))
    for number, batch in enumerate(batches(case.layout, case.joined)):
        # The generator remembers posts, which are not the sieve's, and kernels are loaded.
        warm.judge(batch)
        if number * len(batch) * case.joined > 2 * SOURCES:
            break
    before = anonymous_bytes()
    run = _Run(config, folder, window // 4)
    rows = _filled(run, case, window)
    run.save()
    stats = run.sieve.stats()
    kept, saves = stats.kept, run.saved
    texts = Texts(run.characters / kept)
    # A message a second is kept, so hours are kept messages, and time passes as there were snapshots.
    costs = estimate(config, Load(1.0, 0.0, texts, snapshot_s=kept / saves))
    hours = kept / 3600
    sealed = [segment.ring.kept for segment in run.sieve.near.segments.sealed]
    written = sum(costs.written.values()) * hours
    written -= costs.written.get("segments", 0) * (kept - max(sealed, default=0)) / 3600
    parts, segments = segment_parts(config, texts), run.sieve.near.segments.sealed
    # All sealed segments are written, so none is in memory as a whole.
    memory = costs.memory.anonymous["open segment"] + costs.memory.anonymous["exact stage"]
    memory += len(segments) * hot_bytes(parts) if case.memory else 0
    mapped = sum(parts.values()) - (hot_bytes(parts) if case.memory else 0)
    print(f"kept {kept:,} of {rows:,}, mean {texts.characters:.1f} characters")
    _line("arrays in memory, MiB", memory / _MIB, stats.bytes_used / _MIB)
    _line("  RssAnon of the process, for comparison", memory / _MIB, (anonymous_bytes() - before) / _MIB)
    if case.parts > 1:
        _line("mapped, MiB a segment", mapped / _MIB, stats.bytes_mapped / _MIB / len(segments))
        _line("segment files, B a kept message", *_files(run, costs.written["segments"], hours, kept))
    record = KeptMessages.concat(run.record).take(np.arange(_RECORD))
    piece = piece_bytes(config, Texts(float(np.abs(record.lengths).mean())))
    _line("pieces, B a kept message", piece, len(record_of(0, record).data) / _RECORD)
    _line("written in all, MiB", written / _MIB, (run.journal.written + run.small) / _MIB)
    _line("µs a message", judging_us(config, texts), run.us)
    _fit(record)
    run.journal.close()


def _files(run: _Run, written: int, hours: float, kept: int) -> tuple[float, float]:
    """Bytes a kept message of segments: predicted, and of those files that are there."""
    files = [file for file in run.journal._files if file.holds is Holds.SEGMENT]
    size = sum(file.size for file in files)
    return written * hours / kept, size / sum(file.end - file.first for file in files)


def _fit(record: KeptMessages) -> None:
    """Print bytes of a kept message after LZ4, of columns that `measured.py` has a constant for."""
    names = ("chars", "word_starts", "bags", "simhashes")
    packed = {
        name: len(lz4.block.compress(np.ascontiguousarray(array).tobytes(), store_size=False)) / _RECORD
        for name, array in _by_name(record)
    }
    all_of_them = sum(len(part) for part in _compressed(record)) / _RECORD
    stored = float(np.diff(record.starts).mean())
    rest = all_of_them - sum(packed[name] for name in names)
    print(
        f"  to fit: characters {(packed['chars'] + packed['word_starts']) / stored:.2f} B each, bag "
        f"{packed['bags']:.1f} B, SimHash {packed['simhashes']:.1f} B, other columns {rest:.1f} B",
        flush=True,
    )


def _by_name(record: KeptMessages) -> Iterator[tuple[str, np.ndarray]]:
    for name in ("chars", "word_starts", "bags", "simhashes"):
        array = getattr(record, name)
        if name == "chars" and int(array.max()) < 1 << 16:
            array = array.astype(np.uint16)
        yield name, array


def _compressed(record: KeptMessages) -> Sequence[bytes]:
    plain = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays_of(record))
    return [lz4.block.compress(plain, store_size=False)]


def _line(what: str, predicted: float, measured: float) -> None:
    ratio = measured / predicted if predicted else float("nan")
    print(f"  {what:<42}{predicted:>12.2f}{measured:>12.2f}{ratio:>8.2f}", flush=True)


def main() -> None:
    """Prints machine, and for each configuration a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--window", type=int, default=100_000)
    parser.add_argument("--only", choices=CASES, help="one configuration")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        with tempfile.TemporaryDirectory() as folder:
            measure(CASES[options.only], options.window, folder)
        return
    print(machine_line())
    exact = 10 * options.window
    print(f"input: generated posts, seed 1; near window {options.window:,}, exact window {exact:,}")
    for name in [options.only] if options.only else CASES:
        print(f"{name}\n  {'':<42}{'predicted':>12}{'measured':>12}{'ratio':>8}", flush=True)
        arguments = ["--window", str(options.window), "--only", name, "--here"]
        subprocess.run([sys.executable, "-m", "bench.cost_model", *arguments], check=True)


if __name__ == "__main__":
    main()
