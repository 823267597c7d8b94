"""Share of distinct texts that a Bloom filter keeps, by its bits.

    python -m bench.classics_bloom [--scale 1] [--plot FILE]

Two hashes a text, as published (S4). The paper takes a text for a duplicate if *any* of its bits is set; a
Bloom filter asks for *all* of them. "10 % unique" may be read both ways, so both shares stand here: of n
texts n / 10 distinct ones, or 9 n / 10. A text that counts as new sets its bits. Published: 56 % at 5×10⁴
texts and bits, 90 % at 5×10⁵ texts and 1.6×10⁵ bits, 100 % at 2×10⁷ bits. Beside it stands the filter of
`exact.method: bloom`, which takes its size from the window and the error rate.

--scale: texts and bits in this share of the published numbers
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bench.classics_data import markdown, plot
from bench.machine import machine_line
from tests.stages.exact.filters import add, contains
from twinsieve.stages.contract import Window
from twinsieve.stages.exact.bloom import BloomGenerations

CASES = (
    (50_000, 10_000, ""),
    (50_000, 50_000, "56 %"),
    (500_000, 50_000, ""),
    (500_000, 160_000, "90 %"),
    (500_000, 500_000, ""),
    (500_000, 2_000_000, ""),
    (500_000, 20_000_000, "100 %"),
)
"""Texts, bits, published share."""
SHARES = (0.1, 0.9)
_Rule = Callable[[tuple[int, int]], bool]


def kept_share(distinct: int, bits: int, rule: Callable[..., bool]) -> float:
    """Share of distinct texts that count as new. rule: `any` or `all`"""
    positions = np.random.default_rng(bits).integers(0, bits, (distinct, 2)).tolist()
    is_set = bytearray(bits)
    kept = 0
    for first, second in positions:
        if not rule((is_set[first], is_set[second])):
            kept += 1
            is_set[first] = is_set[second] = 1
    return kept / distinct


def own_filter(distinct: int) -> tuple[float, int]:
    """Share of distinct keys that `exact.method: bloom` calls new, and its bits."""
    seen = BloomGenerations(Window(distinct), 1e-6)
    digests: NDArray[np.uint64] = np.random.default_rng(1).integers(0, 2**64, (distinct, 2), dtype=np.uint64)
    wrong = 0
    for low in range(0, distinct, 1_024):
        part = digests[low : low + 1_024]
        wrong += int(np.count_nonzero(contains(seen, part)))
        add(seen, part)
    return 1 - wrong / distinct, seen.bytes_used * 8


def main() -> None:
    """Print machine, input and the table; draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--plot", help="an SVG file for the curves")
    options = parser.parse_args()
    print(machine_line())
    print(f"input: random hashes, the published numbers × {options.scale:g}; share of distinct texts kept")
    rows = []
    curves: dict[str, list[tuple[float, float]]] = {}
    for texts, bits, published in CASES:
        cells = []
        for share in SHARES:
            distinct = int(texts * share * options.scale)
            for name, rule in (("any", any), ("all", all)):
                value = kept_share(distinct, int(bits * options.scale), rule)
                cells.append(f"{value:.3f}")
                if texts == CASES[-1][0]:
                    curves.setdefault(f"{name} bit(s), {share:.0%} distinct", []).append((bits, value))
        rows.append([f"{texts:,}", f"{bits:,}", published or "–", *cells])
    heads = [
        f"{rule} bit{'s' * (rule == 'all')}, {share:.0%} distinct"
        for share in SHARES
        for rule in ("any", "all")
    ]
    print(markdown(["texts", "bits", "published", *heads], rows))
    for share in SHARES:
        distinct = int(CASES[-1][0] * share * options.scale)
        value, bits = own_filter(distinct)
        print(f"exact.method: bloom, {distinct:,} distinct texts: {value:.6f} kept, {bits:,} bits")
    if options.plot:
        plot(options.plot, curves, "bits", "share of distinct texts kept", log=True)


if __name__ == "__main__":
    main()
