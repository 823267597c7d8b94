"""Pairs of like texts within k bits of SimHash, by length.

    python -m bench.classics_lengths [--rows 4000] [--plot FILE]

"3 bits for long texts, 10 for short ones" (S0, S1). Each body counts once. Of the true pairs (Indel ratio of
the bodies from .85 on) the share within k bits (recall); of the pairs within k bits the share of true ones
(precision). The length is that of the shorter body. Default features; every pair is compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np

from bench.classics_data import markdown, save, svg_pyplot
from bench.classics_sets import AT, Rows, generated_posts, real
from bench.machine import machine_line
from tests.accuracy.data_sets import WEIBO, named_dir
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, TextConfig

KS = (3, 7, 10)
CLASSES = (8, 16, 32, 64, 140, 500)
"""Least characters of each class."""


@dataclass
class Class:
    """Pairs whose shorter body falls into one class of lengths.

    true: all true pairs; within, hits: pairs within k bits, and the true ones of them
    """

    true: int = 0
    within: dict[int, int] = field(default_factory=lambda: dict.fromkeys(KS, 0))
    hits: dict[int, int] = field(default_factory=lambda: dict.fromkeys(KS, 0))


def count(rows: Rows) -> list[Class]:
    """The counts of each class, by comparing every fingerprint with every earlier one."""
    profile: Literal["microblog", "plain"] = "microblog" if rows.profile == "microblog" else "plain"
    bodies, prints = Scheme(SchemeConfig(text=TextConfig(profile=profile))).read(rows.texts)
    first = np.zeros(len(bodies), np.bool_)
    first[np.unique(prints.digests[:, 0], return_index=True)[1]] = True
    chosen = np.flatnonzero(first & prints.has_simhash & ~bodies.exact_only)
    numbers = {rows.ids[row]: number for number, row in enumerate(chosen.tolist())}
    true: dict[int, list[int]] = {}
    for pair in rows.true_pairs:
        if pair.later in numbers and pair.earlier in numbers and pair.similarity >= AT:
            true.setdefault(numbers[pair.later], []).append(numbers[pair.earlier])
    lengths, hashes = bodies.body_lengths[chosen], prints.simhashes[chosen, 0]
    classes = [Class() for _ in CLASSES]
    for row in range(1, len(chosen)):
        bits = np.bitwise_count(hashes[:row] ^ hashes[row])
        place = np.searchsorted(CLASSES, np.minimum(lengths[:row], lengths[row]), "right") - 1
        alike = np.zeros(row, np.bool_)
        alike[true.get(row, [])] = True
        near = np.flatnonzero(alike | (bits <= max(KS)))
        for number, distance, hit in zip(
            place[near].tolist(), bits[near].tolist(), alike[near].tolist(), strict=True
        ):
            counts = classes[number]
            counts.true += hit
            for k in KS:
                counts.within[k] += distance <= k
                counts.hits[k] += hit and distance <= k
    return classes


def class_names() -> list[str]:
    """Names of the classes of lengths."""
    return [*(f"{low}–{high}" for low, high in pairwise(CLASSES)), f"from {CLASSES[-1]}"]


def sets(rows: int) -> Iterator[Rows]:
    """Generated posts, at most 4,000, and weibo where it is."""
    yield generated_posts(min(rows, 4_000))
    if named_dir() is not None:
        yield real(WEIBO, rows)


def share(hits: int, of: int) -> str:
    """A share of two digits, a dash of nothing."""
    return f"{hits / of:.2f}" if of else "–"


def draw(path: str, measured: dict[str, list[Class]]) -> None:
    """Draw recall (solid) and precision (dashed) by length, a panel for each set, as SVG."""
    width = 5 * len(measured)
    figure, panels = svg_pyplot().subplots(1, len(measured), figsize=(width, 4), sharey=True, squeeze=False)
    for axes, (name, classes) in zip(panels[0], measured.items(), strict=True):
        for number, k in enumerate(KS):
            for what, style in (("recall", "-"), ("precision", "--")):
                points = [
                    (low, counts.hits[k] / of)
                    for low, counts in zip(CLASSES, classes, strict=True)
                    if (of := counts.true if what == "recall" else counts.within[k])
                ]
                axes.plot(
                    *zip(*points, strict=True), style, marker=".", color=f"C{number}", label=f"{what}, k {k}"
                )
        axes.set_xscale("log")
        axes.set(title=name, xlabel="characters, at least", ylim=(-0.03, 1.03))
    panels[0][0].legend(fontsize="small")
    save(figure, path)


def main() -> None:
    """Print machine, input and a table for each set; draw the shares."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=4_000)
    parser.add_argument("--plot", help="an SVG file for recall and precision by length")
    options = parser.parse_args()
    print(machine_line())
    measured: dict[str, list[Class]] = {}
    for rows in sets(options.rows):
        print(f"input: {rows.name}, first {len(rows.ids):,} rows; each body once")
        measured[rows.name] = count(rows)
        table = []
        for name, counts in zip(class_names(), measured[rows.name], strict=True):
            recalls = [share(counts.hits[k], counts.true) for k in KS]
            precisions = [share(counts.hits[k], counts.within[k]) for k in KS]
            table.append([name, f"{counts.true:,}", *recalls, *precisions])
        head = [
            "characters",
            "true pairs",
            *(f"recall, k {k}" for k in KS),
            *(f"precision, k {k}" for k in KS),
        ]
        print(markdown(head, table))
    if options.plot:
        draw(options.plot, measured)


if __name__ == "__main__":
    main()
