"""Recall measured by widening the distance, beside the recall by full truth.

    python -m bench.classics_widening [--rows 4000]

S0 measures recall without knowing all true pairs: of the true pairs within 10 bits the share within 3. Pairs
and truth are those of `bench.classics_lengths`.
"""

from __future__ import annotations

import argparse

from bench.classics_data import markdown
from bench.classics_lengths import class_names, count, sets, share
from bench.machine import machine_line

K, WIDE = 3, 10


def main() -> None:
    """Print machine, input and a table for each set."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=4_000)
    options = parser.parse_args()
    print(machine_line())
    for rows in sets(options.rows):
        print(f"input: {rows.name}, first {len(rows.ids):,} rows; k {K}, widened to {WIDE}")
        table = [
            [
                name,
                f"{counts.true:,}",
                share(counts.hits[K], counts.within[K]),
                share(counts.hits[K], counts.hits[WIDE]),
                share(counts.hits[K], counts.true),
            ]
            for name, counts in zip(class_names(), count(rows), strict=True)
        ]
        print(
            markdown(
                ["characters", "true pairs", "precision", "recall by widening", "recall by truth"], table
            )
        )


if __name__ == "__main__":
    main()
