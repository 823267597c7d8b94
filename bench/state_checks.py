"""What checking the numbers of a saved window costs at a start.

    python -m bench.state_checks [--messages 1000000]

A sealed segment of that many messages is checked as it is when its file was mapped. Every byte of the file
was read for its checksum before, so it is in memory. Printed is the best and the median of nine checks, and
those of the checksums, in milliseconds of this thread's processor time.
"""

from __future__ import annotations

import argparse
from statistics import median
from time import thread_time

import mmh3
import numpy as np

from bench.machine import machine_line
from twinsieve.stages.contract import BandLayout
from twinsieve.stages.window.ring import GRANULE, NO_CARD, RingUse, new_counters
from twinsieve.stages.window.segments import SegmentShape

_CHARACTERS = 100


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.state_checks", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    count = parser.parse_args().messages
    use = RingUse(text=True, ids=False, scopes=False, simhashes=False)
    shape = SegmentShape(10 * count, count, 0, use, indexed=True, layout=BandLayout(), load=4.0)
    segment = shape.new(new_counters(), 0, count)
    segment.ring.end = count
    arrays = segment.ring.arrays() | {"buckets": np.zeros(segment.table.count, np.uint64)}
    arrays |= {"keyed": np.ones(1, np.int64), "positions": np.array([0, count])}
    granules = -(-(_CHARACTERS + -(-_CHARACTERS // 16)) // GRANULE)
    records = arrays["records"]
    records["length"], records["own"] = _CHARACTERS, NO_CARD
    records["offset"] = granules * np.arange(count)
    records["position"] = np.arange(count)
    arrays["texts"] = np.zeros(granules * GRANULE * count, np.uint16)
    cells = 1 << (count + count // 2).bit_length()
    arrays["tag_slots"] = np.zeros(cells, np.int32)
    arrays["tag_slots"][:count] = ~np.arange(count)
    size = sum(array.nbytes for array in arrays.values())
    print(machine_line())
    print(f"a segment of {count:,} messages of {_CHARACTERS} characters, {size / 2**20:.0f} MiB")
    checks, sums = [], []
    for _ in range(9):
        began_s = thread_time()
        segment.check(arrays)
        checks.append(thread_time() - began_s)
    for _ in range(3):
        began_s = thread_time()
        for array in arrays.values():
            mmh3.mmh3_x64_128_digest(np.ascontiguousarray(array).view(np.uint8).reshape(-1).data)
        sums.append(thread_time() - began_s)
    print(f"check: {1000 * min(checks):.1f} ms best, {1000 * median(checks):.1f} ms median")
    print(f"checksums of the same bytes: {1000 * min(sums):.1f} ms best, {1000 * median(sums):.1f} ms median")


if __name__ == "__main__":
    main()
