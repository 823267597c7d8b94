"""Exact windows of days: what keeping, saving and restoring N keys costs.

    python -m bench.exact_windows --keys 10000000 [--method bloom] [--between 1500000] [--folder DIR]

A sieve without a near stage keeps N random digests and a fifth more, so that its window of N is full. It is
saved in the background, as an index does, whenever `--between` more were kept (5 minutes at 5,000 a second).
Printed are a line for each of the last saves (pause, seconds until its files are on disk, bytes written since
the save before, those bytes as a multiple of the memory of what was kept since), a save after which nothing
was kept, and the sums of all saves. A second process judges the same without saving: the difference of the
peaks of anonymous memory is what saving takes. A third one restores the sieve, with its files in the page
cache. `--direct` puts the first N keys into the trie without a look-up, and saves then: for tries so large
that to judge all keys takes long.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from time import perf_counter

import numpy as np

from bench.machine import machine_line
from bench.snapshots import Peak, Save, Saver, anonymous_bytes, restored, run_steps, saved_files
from twinsieve.pipeline.saved.manifest import Holds
from twinsieve.stages.contract import Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve, worst_case_bytes

_MIB = 1 << 20
_ROWS = 50_000
_SHOWN = 4
_NEAR_WINDOW = 100_000
"""The ring of a sieve without a near stage: small, so that the figures are those of the exact stage."""


def config_of(keys: int, method: str) -> SieveConfig:
    """A sieve that finds exact copies only."""
    return SieveConfig(
        ExactConfig(method, window=Window(keys)),  # type: ignore[arg-type]
        NearConfig(method="none", window=Window(_NEAR_WINDOW)),
        scheme_id="bench",
    )


def batches(count: int, first: int = 0) -> Iterator[Batch]:
    """Messages from number `first` on, with random digests and without texts, one a ms."""
    rng = np.random.default_rng(1 + first)
    batch = Batch.blank(_ROWS)
    for start in range(first, first + count, _ROWS):
        batch.fingerprints.digests = rng.integers(0, 2**64, (_ROWS, 2), dtype=np.uint64)
        batch.positions = np.arange(start, start + _ROWS)
        batch.times_ms = batch.positions.copy()
        batch.arrivals_ms = batch.positions.copy()
        yield batch


def _parts(save: Save) -> dict[str, int]:
    """Bytes of the files of the exact stage."""
    return {file.name: file.size for file in save.files if file.holds is Holds.PART}


def _size(save: Save) -> int:
    return save.small + sum(_parts(save).values())


def _written(before: Save | None, save: Save) -> int:
    """Bytes that a save wrote of the exact stage, with its manifest."""
    known = _parts(before) if before is not None else {}
    return save.small + sum(size for name, size in _parts(save).items() if name not in known)


def fill(sieve: BatchSieve, keys: int) -> None:
    """Put the first keys into the trie of an empty sieve, without asking for them."""
    assert sieve._tiers is not None
    began = perf_counter()
    for batch in batches(keys):
        sieve._tiers.add(batch.fingerprints.digests, batch.positions, batch.positions, batch.times_ms)
    seconds = perf_counter() - began
    sieve.near.segments.begin_at(keys)
    print(f"{keys:,} keys added without a look-up: {1e6 * seconds / keys:.2f} µs a key", flush=True)


def judge(keys: int, method: str, between: int, folder: str | None, *, direct: bool) -> None:
    """Fill the window and save; without a folder, fill it only. direct: as `fill` does"""
    config = config_of(keys, method)
    warm = BatchSieve(config_of(10, method))
    warm.judge(next(batches(_ROWS)))
    before = anonymous_bytes()
    sieve = BatchSieve(config)
    saver = None if folder is None else Saver(sieve, folder, _NEAR_WINDOW)
    saves: list[Future[Save]] = []
    seconds, left, rows = 0.0, between, 0
    with Peak() as peak:
        if direct:
            fill(sieve, keys)
            left = 0
        for batch in batches(keys + keys // 5) if not direct else batches(4 * between, keys):
            began = perf_counter()
            sieve.judge(batch)
            seconds, rows, left = seconds + perf_counter() - began, rows + len(batch), left - len(batch)
            if saver is not None and left <= 0:
                if saves:
                    saves[-1].result()
                saves.append(saver.save())
                left = between
        if saver is not None:
            # The last one is a save after which nothing was kept.
            for _ in range(2):
                if saves:
                    saves[-1].result()
                saves.append(saver.save())
            saves[-1].result()
    planned = sum(size for name, size in worst_case_bytes(config).items() if name in ("bloom", "trie"))
    used = sieve.stats().bytes_used
    exact = sieve._filters if method == "bloom" else sieve._tiers
    assert exact is not None
    if saver is not None:
        done = [save.result() for save in saves]
        key_bytes = exact.bytes_used / keys
        head = ("kept", "pause ms", "seconds", "MiB written", "of kept", "files", "MiB all")
        print("{:>12} {:>9} {:>9} {:>13} {:>9} {:>6} {:>9}".format(*head))
        new = [_written(before, save) for before, save in zip([None, *done], done, strict=False)]
        for save, written in list(zip(done, new, strict=True))[-_SHOWN - 2 :]:
            of_kept = written / (save.kept * key_bytes) if save.kept else 0.0
            print(
                f"{save.kept:>12,} {1000 * save.pause_s:>9.1f} {save.seconds:>9.2f} {written / _MIB:>13.2f} "
                f"{of_kept:>9.2f} {len(_parts(save)) + 1:>6} {_size(save) / _MIB:>9.1f}"
            )
        kept = sum(save.kept for save in done)
        pauses = [save.pause_s for save in done]
        print(
            f"{len(done)} saves: pauses {1000 * float(np.median(pauses)):.1f} ms, "
            f"{1000 * float(np.quantile(pauses, 0.95)):.1f} at the 95th percentile, "
            f"{1000 * max(pauses):.1f} the longest; "
            f"written {sum(new) / _MIB:,.0f} MiB, {sum(new) / kept:.1f} B a kept key, "
            f"{sum(new) / kept / key_bytes:.2f} of its memory; files {_size(done[-1]) / _MIB:,.0f} MiB, "
            f"{_size(done[-1]) / keys:.1f} B a key of the window; beside them pieces of kept messages, "
            f"{(sum(save.written for save in done) - sum(new)) / kept:.0f} B a kept key"
        )
    how = "saving" if folder else "not saving"
    print(
        f"{how}: {1e6 * seconds / rows:.2f} µs a key, {method} {exact.bytes_used / _MIB:,.1f} MiB "
        f"({exact.bytes_used / keys:.2f} B a key, planned {planned / keys:.2f}), sieve {used / _MIB:,.1f} "
        f"MiB, anonymous memory {anonymous_bytes() / _MIB - before / _MIB:,.1f} MiB more than before, "
        f"{(peak.bytes - before) / _MIB:,.1f} at its peak",
        flush=True,
    )


def restore(keys: int, method: str, folder: str) -> None:
    """Restore the saved sieve, and print how long it takes."""
    BatchSieve(config_of(10, method)).judge(next(batches(_ROWS)))
    for file in saved_files(folder):
        (Path(folder) / file.name).read_bytes()
    before = anonymous_bytes()
    again = restored(folder, config_of(keys, method))
    took_s, held = again.seconds, again.sieve.stats().bytes_used
    print(
        f"restart, files in the page cache: {took_s:.2f} s, {1e6 * took_s / keys:.2f} µs a key; peak of "
        f"anonymous memory {again.more / _MIB:,.0f} MiB more than before, afterwards "
        f"{(anonymous_bytes() - before) / _MIB:,.0f} MiB, sieve {held / _MIB:,.0f} MiB",
        flush=True,
    )


def main() -> None:
    """Prints machine, the last saves, memory, and the restart."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--method", choices=["bloom", "trie"], default="bloom")
    parser.add_argument("--between", type=int, default=1_500_000)
    parser.add_argument("--direct", action="store_true", help="with the trie: fill it without look-ups")
    parser.add_argument("--folder", help="where the sieve is saved; default: a temporary folder")
    parser.add_argument("--step", choices=["saving", "judging", "restart"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is not None:
        if options.step == "restart":
            restore(options.keys, options.method, options.folder)
        else:
            folder = options.folder if options.step == "saving" else None
            judge(options.keys, options.method, options.between, folder, direct=options.direct)
        return
    print(machine_line())
    print(
        f"input: random digests, all kept; {options.method}, window {options.keys:,}, saved every "
        f"{options.between:,}",
        flush=True,
    )
    steps = ("saving", "restart") if options.direct else ("saving", "judging", "restart")
    run_steps("bench.exact_windows", steps, options.folder)


if __name__ == "__main__":
    main()
