"""Memory that `dedup --clusters` takes for a dropped row, and `--keep` for a row of the inputs.

    python -m bench.dedup_memory [--rows 1000000]

Rows come in chunks of 4,096; three of ten are dropped for one of the 100,000 before them. Ids are texts of
eleven characters. Bytes are those that Python and NumPy hold, as tracemalloc counts them.
"""

from __future__ import annotations

import argparse
import tracemalloc
from typing import get_args

import numpy as np

from bench.machine import machine_line
from twinsieve.pipeline.dedup import Keep
from twinsieve.pipeline.dedup.chosen import Chosen
from twinsieve.pipeline.dedup.clusters import Clusters
from twinsieve.pipeline.dedup.leaders import Leader
from twinsieve.stages.contract import NO_LEADER, Kind

_CHUNK, _BACK, _DROPPED = 4096, 100_000, 0.3


class Nowhere:
    """Takes bytes and holds none."""

    def write(self, data: bytes, /) -> None:
        """Forget them."""


def clusters_bytes(rows: int, rng: np.random.Generator) -> tuple[float, float]:
    """Bytes for each dropped row: held at the end of the input, and at most while lines are written."""
    tracemalloc.start()
    clusters, dropped = Clusters(), 0
    for first in range(1, rows, _CHUNK):
        positions = first + np.flatnonzero(rng.random(_CHUNK) < _DROPPED)
        leaders = np.maximum(positions - rng.integers(1, _BACK, len(positions)), 1)
        known = {leader: Leader(f"p{leader:010d}", "", "a.jsonl", leader) for leader in set(leaders.tolist())}
        places = [
            {"position": position, "id": f"p{position:010d}", "source": "a.jsonl", "line": position}
            for position in positions.tolist()
        ]
        clusters.add(leaders, places, known)
        dropped += len(positions)
    del known, places
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    clusters.write(Nowhere())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / dropped, peak / dropped


def keep_bytes(keep: Keep, rows: int, rng: np.random.Generator) -> tuple[float, float]:
    """Bytes for each row of the inputs: at most in the first pass, and where rows are about to be written."""
    tracemalloc.start()
    chosen, every, none = Chosen(keep, 1), np.arange(_CHUNK), np.zeros(0, np.int64)
    for first in range(1, rows, _CHUNK):
        dropped = rng.random(_CHUNK) < _DROPPED
        leaders = np.maximum(np.arange(first, first + _CHUNK) - rng.integers(1, _BACK, _CHUNK), 1)
        kinds = np.where(dropped, Kind.NEAR, Kind.UNIQUE).astype(np.uint8)
        leaders = np.where(dropped, leaders, NO_LEADER)
        chosen.take(_CHUNK, every, kinds, leaders, ["a text"] * _CHUNK, none)
    _, peak = tracemalloc.get_traced_memory()
    mask = chosen.mask()
    tracemalloc.stop()
    return peak / rows, mask.nbytes / rows


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    print(machine_line())
    for keep in get_args(Keep)[1:]:
        peak, held = keep_bytes(keep, rows, np.random.default_rng(1))
        print(f"--keep {keep}: {peak:.1f} bytes a row at most, {held:.1f} in the second pass")
    held, peak = clusters_bytes(rows, np.random.default_rng(1))
    print(f"--clusters: {held:.0f} bytes a dropped row, {peak:.0f} while it is written")


if __name__ == "__main__":
    main()
