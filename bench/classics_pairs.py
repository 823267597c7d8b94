"""Stage 2 of S4: SimHash and all pairs within 4 bits of n texts.

    python -m bench.classics_pairs [--rows N …]

Published: 2 s for 100 texts, about a minute for 1,000, each compared with each; 500 and 2,000 are drawn only.
"""

from __future__ import annotations

import argparse

from bench.classics_data import markdown, posts
from bench.machine import best_seconds, machine_line
from twinsieve import find_all, simhash

ROWS = (100, 500, 1_000, 2_000, 1_000_000)
PUBLISHED_S = {100: "2", 1_000: "about 60"}
K = 4


def main() -> None:
    """Print machine, input and the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    rows = parser.parse_args().rows
    texts = posts(max(rows), repeats=0.01)
    find_all(simhash(texts[:100]), K)
    print(machine_line())
    print(f"input: generated posts, 1 % repeats; simhash and find_all(·, {K})")
    table = []
    for count in rows:
        part = texts[:count]
        runs = 5 if count <= 100_000 else 1
        seconds = best_seconds(lambda part=part: simhash(part), runs)
        prints = simhash(part)
        more = best_seconds(lambda prints=prints: find_all(prints, K), runs)
        found = len(find_all(prints, K))
        table.append(
            [f"{count:,}", PUBLISHED_S.get(count, "–")]
            + [f"{1e3 * value:,.1f}" for value in (seconds, more, seconds + more)]
            + [f"{found:,}"]
        )
    print(markdown(["texts", "published, s", "simhash, ms", "find_all, ms", "both, ms", "pairs"], table))


if __name__ == "__main__":
    main()
