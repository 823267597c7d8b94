"""Limits of `near.differences: full` that are chosen on all labelled sets but one, and judge that one.

    python -m bench.choose_limits [--choices 150]

For each set left out: of the choices that reach a precision of .97 on the pairs of the other sets, the one
with the highest recall; its figures on the set left out are what to expect of a kind of text for which nobody
has chosen limits. Choices are drawn from the values of the profiles and values around them; the program
itself judges each pair under each choice. Data: TWINSIEVE_DATA. Only counts are printed.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from tests.accuracy.label_counts import counts_of
from tests.accuracy.left_out import CHOICES, TRIED, chosen_on_others
from twinsieve.stages.contract import SIMILARITY_SCALE


def main() -> None:
    """Print machine and table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--choices", type=int, default=CHOICES)
    table = Table(
        "set left out", "right/wrong/unsure", "precision", "unsure as wrong", "recall", "similarity", "limits"
    )
    for name, (choice, verdicts) in chosen_on_others(parser.parse_args().choices).items():
        counts = counts_of(verdicts)
        limits = ", ".join(f"{key} {getattr(choice.differences, key)}" for key in TRIED)
        similarity = f"{choice.similarity / SIMILARITY_SCALE:g}"
        table.add_row(name, *counts.cells(), str(counts.recall), similarity, limits)
    console = Console(width=190, highlight=False)
    console.print(machine_line())
    console.print(table)


if __name__ == "__main__":
    main()
