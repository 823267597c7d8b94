"""Memory of a kept message, and of a process whose window has been full for long.

    python -m bench.memory [--kept 1000000] [--window 100000]

First part: a sieve of default settings keeps that number of generated posts: bytes of all its arrays, and
growth of the process, by kept message. Second part: a smaller window, ten windows long: the process must not
grow.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bench.machine import machine_line
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.pipeline.tools.generate.stream import SOURCES, Posts, generate_columns
from twinsieve.stages.contract import ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve, worst_case_bytes
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Memory of this process that is in use now, after what Python and the allocator can give back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@dataclass
class Feeder:
    """Puts generated posts through a scheme and a sieve."""

    scheme: Scheme
    sieve: BatchSieve

    def keep(self, posts: Iterator[Posts], count: int) -> int:
        """Posts read until `count` more are kept."""
        read, goal = 0, self.sieve.stats().kept + count
        while self.sieve.stats().kept < goal:
            texts = next(posts).texts
            self.sieve.judge(batch_of(*self.scheme.read(texts)))
            read += len(texts)
        return read


def kept_message(kept: int) -> None:
    """Bytes by kept message when a window of `kept` is full."""
    scheme = Scheme(SchemeConfig())
    posts = generate_columns(kept * 2 + 4 * SOURCES, seed=1)
    window = Window(kept)
    config = SieveConfig(near=NearConfig(window=window), exact=ExactConfig(window=Window(kept * 10)))
    warm = Feeder(
        scheme, BatchSieve(replace(config, near=NearConfig(window=Window(1_000)), exact=ExactConfig("none")))
    )
    # The generator remembers 2 × SOURCES posts of its own, which are not the sieve's.
    warm.keep(posts, 2 * SOURCES)
    before = resident_bytes()
    feeder = Feeder(scheme, BatchSieve(config))
    read = feeder.keep(posts, kept)
    stats = feeder.sieve.stats()
    grown = resident_bytes() - before
    print(f"{kept:,} kept of {read:,} generated posts (seed 1), exact window {kept * 10:,}, bloom")
    filters = worst_case_bytes(config)["bloom"]
    sizes = {
        "columns of kept messages": stats.bytes_used - filters,
        "filter of the exact window": filters,
        "growth of the process": grown,
    }
    for what, size in sizes.items():
        print(f"  {what}: {size / stats.held:.1f} B a kept message ({size / 2**20:.0f} MiB)")
    print("  worst case of these settings by part, MiB:")
    for part, size in worst_case_bytes(config).items():
        print(f"    {part}: {size / 2**20:.1f}")


def flatness(window: int, windows: int = 10) -> None:
    """Memory of the process and of the sieve after each window's worth of kept messages."""
    config = SieveConfig(near=NearConfig(window=Window(window)), exact=ExactConfig(window=Window(window * 3)))
    feeder = Feeder(Scheme(SchemeConfig()), BatchSieve(config))
    posts = generate_columns(window * (windows + 1) * 2 + 4 * SOURCES, seed=2)
    print(f"near window {window:,}, exact window {window * 3:,}; MiB of the process (of the sieve):")
    feeder.keep(posts, 2 * SOURCES)
    sizes = []
    for number in range(1, windows + 1):
        feeder.keep(posts, window)
        sizes.append(resident_bytes())
        used = feeder.sieve.stats().bytes_used
        print(f"  {number}: {sizes[-1] / 2**20:.1f} ({used / 2**20:.1f})", flush=True)
    # Blooms are full after three windows; from there on nothing may grow.
    print(f"  growth from window 4 to {windows}: {(sizes[-1] - sizes[3]) / 2**20:+.1f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kept", type=int, default=1_000_000)
    parser.add_argument("--window", type=int, default=100_000)
    arguments = parser.parse_args()
    print(machine_line())
    kept_message(arguments.kept)
    flatness(arguments.window)


if __name__ == "__main__":
    main()
