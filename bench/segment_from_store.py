"""A shard gets a segment from a slow store: the time of each step, and memory beside what `lint` says.

    python -m bench.segment_from_store [--kept 4000000] [--mb-s 100] [--scratch .]

One process keeps generated posts until a segment of this size is sealed, and writes its file. Another one
does what a shard does with it: copies it from a store that gives this many MB a second, checks and maps the
copy, brings what look-ups read into memory, and answers for a block of 1,000 messages.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from bench.large_window import posted, status_mib
from bench.machine import machine_line
from bench.shards import sealed_by
from twinsieve.pipeline.index.snapshot_store import SnapshotStore
from twinsieve.pipeline.saved.manifest import Holds, StateFile
from twinsieve.pipeline.saved.segment_files import write_segment
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.named_files import store_error
from twinsieve.pipeline.settings.segment_bytes import hot_bytes, segment_parts
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.shards.holdings import HeldSnapshots
from twinsieve.pipeline.sizing.estimate import Texts
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.segment_reader import SegmentReader
from twinsieve.stages.window.segments import SealedSegment

_SEED = 12
_ROWS = 1_000


class _Slow(BufferedReader):
    """A file whose reads take the time in which a store sends their bytes."""

    bytes_a_second = 0.0
    end_s = 0.0
    """When the last bytes of any of them came."""

    def read(self, size: int | None = -1, /) -> bytes:
        begun = time.perf_counter()
        data = super().read(size)
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


def _fetch(folder: Path, kept: int, file: StateFile, mb_s: float, scratch: str) -> None:
    _Slow.bytes_a_second = mb_s * 1e6
    config = _config(kept)
    reader = SegmentReader(config)
    batch = next(posted(10 * kept, config.layout, _SEED + 1)).batch.slice(0, _ROWS)
    store = SnapshotStore(Storage((_SlowStore(), str(folder)), store_error), 2)
    snapshots = HeldSnapshots(store, b"", b"", "", scratch, reader.add)
    before_mib = status_mib("RssAnon")
    times = [time.perf_counter()]
    held = snapshots.fetch(file)
    times += [_Slow.end_s, time.perf_counter()]
    held.segment.use_memory()
    times.append(time.perf_counter())
    reader.answer(batch, held.segment)
    times.append(time.perf_counter())
    grown_mib = status_mib("RssAnon") - before_mib
    copied, checked, brought, answered = (end - begin for begin, end in pairwise(times))
    hot_mib = hot_bytes(segment_parts(config, Texts())) / 2**20
    print(
        f"a segment of {file.end - file.first:,} kept, {file.size / 1e6:,.0f} MB; "
        f"the store gives {mb_s:g} MB/s\n"
        f"copied in {copied:.1f} s ({file.size / copied / 1e6:.0f} MB/s), checked and mapped in "
        f"{checked:.1f} s, look-ups in memory in {brought:.1f} s, {_ROWS:,} messages answered in "
        f"{answered:.2f} s\n"
        f"anonymous memory: {grown_mib:,.0f} MiB more; lint counts {hot_mib:,.0f} MiB"
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
