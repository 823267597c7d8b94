"""Limits of `near.differences: full` that are chosen on all judged sets but one, and judge that one.

    python -m bench.choose_limits [--choices 150]

For each set left out: of the choices that reach a precision of .97 on the pairs of the other sets, the one
with the highest recall; what it says of the set left out is what a kind of text can expect that nobody has
labelled. Choices are drawn from what the profiles have and from values around it; the program itself judges
each pair under each choice. Data: TWINSIEVE_DATA. Only counts are printed.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from tests.accuracy.labels import PROFILES, configured, judged_pairs, texts_of
from twinsieve.pipeline.evaluate.judged import JudgedPair, Share, judge_pairs
from twinsieve.pipeline.tune.limits import VALUES
from twinsieve.stages.contract import FULL, Differences

_PRECISION = 0.97
_SIMILARITIES = (7_000, 7_500, 8_000, 8_500)


class Choice(NamedTuple):
    """Limits, and from where on two texts are alike."""

    similarity: int
    differences: Differences


def choices(count: int) -> list[Choice]:
    """So many of all combinations, the same each time."""
    every = list(product(_SIMILARITIES, *VALUES.values()))
    drawn = random.Random(1).sample(every, count)
    return [
        Choice(similarity, Differences(FULL, **dict(zip(VALUES, values, strict=True))))
        for similarity, *values in drawn
    ]


def dropped(pairs: list[JudgedPair], choice: Choice) -> NDArray[np.bool_]:
    """bool[pairs]: what the choice drops."""
    found = np.zeros(len(pairs), bool)
    for name in sorted({pair.set for pair in pairs}):
        rows = [row for row, pair in enumerate(pairs) if pair.set == name]
        scheme, sieve = configured(PROFILES[name])
        near = replace(
            sieve.near, candidates="scan", similarity=choice.similarity, differences=choice.differences
        )
        verdicts = judge_pairs(
            [pairs[row] for row in rows], texts_of(name), scheme, replace(sieve, near=near)
        )
        found[rows] = [verdict.dropped for verdict in verdicts]
    return found


def shares(labels: NDArray[np.str_], drops: NDArray[np.bool_]) -> tuple[Share, Share]:
    """(precision, recall); pairs that readers were not sure of do not count."""
    same, different = labels == "same", labels == "different"
    right = int((drops & same).sum())
    return Share(right, right + int((drops & different).sum())), Share(right, int(same.sum()))


def main() -> None:
    """Print machine and table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--choices", type=int, default=150)
    pairs = judged_pairs()
    sets = np.array([pair.set for pair in pairs])
    labels = np.array([pair.label for pair in pairs])
    tried = choices(parser.parse_args().choices)
    drops = np.array([dropped(pairs, choice) for choice in tried])
    table = Table("set left out", "precision", "recall", "similarity", "limits", title=f"{len(pairs)} pairs")
    together = np.zeros(len(pairs), bool)
    for name in dict.fromkeys(sets.tolist()):
        others = sets != name
        best = max(range(len(tried)), key=lambda one: _worth(labels[others], drops[one, others]))
        together[~others] = drops[best, ~others]
        precision, recall = shares(labels[~others], drops[best, ~others])
        chosen = tried[best]
        values = [f"{key} {getattr(chosen.differences, key)}" for key in VALUES]
        table.add_row(name, str(precision), str(recall), f"{chosen.similarity / 10_000:g}", ", ".join(values))
    precision, recall = shares(labels, together)
    table.add_row("all of these", str(precision), str(recall))
    console = Console(width=190, highlight=False)
    console.print(machine_line())
    console.print(table)


def _worth(labels: NDArray[np.str_], drops: NDArray[np.bool_]) -> tuple[float, float]:
    """Sorts choices: precision up to what is asked for, then recall."""
    precision, recall = (share.value for share in shares(labels, drops))
    return min(precision, _PRECISION), recall


if __name__ == "__main__":
    main()
