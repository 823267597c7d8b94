"""Hamming mode against a full scan: every k, several layouts, fingerprints of posts and random ones.

    python -m bench.quality_hamming [--rows 6000]

Posts are generated, and real ones too where TWINSIEVE_DATA names their folder.

The scan compares a fingerprint with every kept one, in NumPy, and takes the nearest, then the oldest.
"""

from __future__ import annotations

import argparse
from math import comb

from bench.machine import machine_line
from tests.accuracy.data_sets import named_dir
from tests.accuracy.hamming import (
    MAX_DISTANCE,
    generated_batch,
    layouts,
    random_batch,
    real_batch,
    wrong_rows,
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=6_000)
    rows = parser.parse_args().rows
    print(machine_line())
    batches = {"generated": generated_batch(rows), "random": random_batch(rows)}
    if named_dir() is not None:
        batches["weibo_dev"] = real_batch(rows)
    for name, batch in batches.items():
        print(f"{name} fingerprints, {rows:,} rows, window over all, exact stage off")
        for k in range(MAX_DISTANCE + 1):
            for blocks in layouts(k):
                dropped, wrong = wrong_rows(batch, k, blocks, rows)
                layout = f"k {k}, {blocks:2} blocks, {comb(blocks, k):3} tables"
                print(f"  {layout}: {dropped:,} dropped by the scan, {wrong} rows differ", flush=True)


if __name__ == "__main__":
    main()
