"""A shard gets a segment from a slow store: the time of each step, and memory beside what `lint` says.

    python -m bench.segment_from_store [--kept 4000000] [--mb-s 100] [--scratch .]

One process keeps generated posts until a segment of this size is sealed, and writes its file. Another one
does what a shard does with it: copies it from a store that gives this many MB a second, checks and maps the
copy, brings what look-ups read into memory, and answers for a block of 1,000 messages. Its memory is read
every few ms: the most until the copy is mapped, and what it has in the end.

Then a shard begins to copy it again, and the window passes the segment meanwhile: no snapshot names the file
any more, and it is deleted, as an object store then says to whoever reads on.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import threading
import time
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from fsspec.implementations.local import LocalFileSystem

from bench.large_window import posted
from bench.machine import machine_line, memory_mib
from bench.shards import sealed_by
from twinsieve.pipeline.basics.daemon_executor import DaemonExecutor
from twinsieve.pipeline.index.snapshot_store import SnapshotStore
from twinsieve.pipeline.saved.manifest import Holds, StateFile
from twinsieve.pipeline.saved.segment_files import write_segment
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.named_files import store_error
from twinsieve.pipeline.settings.segment_bytes import Texts, hot_bytes, segment_parts
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.shards.holdings import HeldSnapshots, Holdings, Seen, Wanted
from twinsieve.pipeline.shards.rendezvous import Span
from twinsieve.pipeline.sizing.process_memory import taking_over_bytes
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.segment_reader import SegmentReader
from twinsieve.stages.window.segments import SealedSegment

_SEED = 12
_ROWS = 1_000
_LOOK_S = 0.005


class _Slow(BufferedReader):
    """A file whose reads take the time in which a store sends their bytes."""

    bytes_a_second = 0.0
    end_s = 0.0
    """When the last bytes of any of them came."""
    done = 0
    """Bytes of all of them."""

    def read(self, size: int | None = -1, /) -> bytes:
        begun = time.perf_counter()
        if not os.fstat(self.fileno()).st_nlink:
            raise FileNotFoundError(self.fileno())
        data = super().read(size)
        _Slow.done += len(data)
        time.sleep(max(0.0, len(data) / self.bytes_a_second - (time.perf_counter() - begun)))
        _Slow.end_s = time.perf_counter()
        return data


class _SlowStore(LocalFileSystem):  # type: ignore[misc]
    """Files of a folder as if they were not on this machine: they are copied before they are mapped."""

    protocol = "slow"

    def open(self, path: str, *_: Any, **__: Any) -> Any:
        return _Slow(open(path, "rb", buffering=0), 1 << 20)


def _config(kept: int) -> SieveConfig:
    written = {"near": {"window": {"messages": 2 * kept}, "segment": kept}}
    return sieve_config(Settings.model_validate(written), "")


def _sealed(kept: int) -> SealedSegment:
    """The first segment of a sieve that keeps generated posts."""
    config = _config(kept)
    sieve = BatchSieve(config)
    sealed = sealed_by(sieve)
    for each in posted(10 * kept, config.layout, _SEED):
        sieve.judge(each.batch)
        if sealed:
            return sealed[0]
    raise SystemExit("no segment was sealed")


def _write(folder: Path, kept: int, found: Any) -> None:
    sealed = _sealed(kept)
    with open(folder / "a.segment", "wb") as file:
        digest = write_segment(file, "", sealed)
        size = file.tell()
    found.send(StateFile("a.segment", Holds.SEGMENT, size, digest, first=sealed.first, end=sealed.end))


class _Memory:
    """Anonymous memory of this process in MiB beyond that at the start. A context manager.

    most: the most until now; now: when it was read last
    """

    def __enter__(self) -> _Memory:
        self._before = memory_mib("self", "RssAnon")
        self.most = self.now = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_S):
            self.now = memory_mib("self", "RssAnon") - self._before
            self.most = max(self.most, self.now)


class _Named(HeldSnapshots):
    """As if the newest snapshot named these files."""

    files: ClassVar[list[StateFile]] = []

    def look(self, known: list[int] | None) -> Seen:
        del known
        return Seen([len(self.files)], self.files, [])


def _fetch(folder: Path, kept: int, file: StateFile, mb_s: float, scratch: str) -> None:
    _Slow.bytes_a_second = mb_s * 1e6
    config = _config(kept)
    reader = SegmentReader(config)
    batch = next(posted(10 * kept, config.layout, _SEED + 1)).batch.slice(0, _ROWS)
    store = SnapshotStore(Storage((_SlowStore(), str(folder)), store_error), 2)
    snapshots = _Named(store, b"", b"", "", scratch, reader.add)
    with _Memory() as memory:
        times = [time.perf_counter()]
        held = snapshots.fetch(file)
        times += [_Slow.end_s, time.perf_counter()]
        copying_mib = memory.most
        held.segment.use_memory()
        times.append(time.perf_counter())
        reader.answer(batch, held.segment)
        times.append(time.perf_counter())
    copied, checked, brought, answered = (end - begin for begin, end in pairwise(times))
    hot_mib = hot_bytes(segment_parts(config, Texts())) / 2**20
    print(
        f"a segment of {file.end - file.first:,} kept, {file.size / 1e6:,.0f} MB; "
        f"the store gives {mb_s:g} MB/s\n"
        f"copied in {copied:.1f} s ({file.size / copied / 1e6:.0f} MB/s), checked and mapped in "
        f"{checked:.1f} s, look-ups in memory in {brought:.1f} s, {_ROWS:,} messages answered in "
        f"{answered:.2f} s\n"
        f"anonymous memory: at most {copying_mib:,.0f} MiB more until then, {memory.now:,.0f} in the end; "
        f"lint counts {taking_over_bytes(kept) / 2**20:,.0f} and {hot_mib:,.0f} MiB",
        flush=True,
    )
    del held
    _pass_over(snapshots, folder / file.name, file)


def _pass_over(snapshots: _Named, path: Path, file: StateFile) -> None:
    """Drop the file from snapshots and store when half of it is copied, and print what comes then."""
    _Named.files, _Slow.done = [file], 0
    span = Span(file.first, file.end)
    holdings = Holdings(snapshots, DaemonExecutor("segments"), SystemClock(), 1 << 40, 60.0)

    def step() -> bool:
        holdings.step(Wanted(frozenset({span})))
        time.sleep(_LOOK_S)
        return not holdings.named and holdings.named is not None

    while _Slow.done < file.size // 2:
        step()
    begun = time.perf_counter()
    _Named.files = []
    path.unlink()
    while not holdings.problems:
        step()
    given_up_s = time.perf_counter() - begun
    while not step():
        pass
    print(
        f"passed by the window when {_Slow.done / 1e6:,.0f} MB were copied: given up after "
        f"{given_up_s:.2f} s, {len(holdings.held)} segments held; {'; '.join(holdings.notices)}"
    )


def main() -> None:
    """Print machine and figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kept", type=int, default=4_000_000)
    parser.add_argument("--mb-s", type=float, default=100.0)
    parser.add_argument("--scratch", default=".", help="folder for the copy")
    options = parser.parse_args()
    print(machine_line(), flush=True)
    # Processes of their own: what one has in memory is not counted in the other.
    context = multiprocessing.get_context("spawn")
    with TemporaryDirectory(dir=options.scratch) as folder:
        found, sender = context.Pipe(duplex=False)
        writer = context.Process(target=_write, args=(Path(folder), options.kept, sender))
        writer.start()
        sender.close()
        file = found.recv()
        writer.join()
        path = Path(folder).absolute()
        shard = context.Process(target=_fetch, args=(path, options.kept, file, options.mb_s, options.scratch))
        shard.start()
        shard.join()
        raise SystemExit(shard.exitcode)


if __name__ == "__main__":
    main()
