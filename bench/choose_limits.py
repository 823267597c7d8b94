"""Limits of `near.differences: full` that are chosen on some labelled pairs and shown on others.

    python -m bench.choose_limits [--choices 150]

Of the choices that reach a precision of .97 on the pairs that decide, the one with the highest recall is
taken. The first table leaves each set out: its figures are what to expect of a kind of text for which nobody
has chosen limits. The second one parts the pairs of each profile in two by a hash of the earlier message, and
shows each half under the choice of the other half, beside the limits that the profile has. Choices are drawn
from the values of the profiles and values around them; the program itself judges each pair under each choice.
*Pairs* were drawn by similarity, *drops* from whole runs of commit 282acbd1; both decide. Data:
TWINSIEVE_DATA. Only counts are printed.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from tests.accuracy.label_counts import counts_of
from tests.accuracy.left_out import CHOICES, TRIED, Choice, Judged, chosen_on_half, chosen_on_others
from twinsieve.stages.contract import SIMILARITY_SCALE

_FIGURES = ("pairs: right/wrong/unsure", "precision", "recall", "drops: right/wrong/unsure", "precision")


def main() -> None:
    """Print machine and tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--choices", type=int, default=CHOICES)
    choices = parser.parse_args().choices
    others = Table("set left out", *_FIGURES, "similarity", "limits")
    for name, (choice, judged) in chosen_on_others(choices).items():
        others.add_row(name, *_figures(judged), *_shown(choice))
    halves = Table("profile", "half", "limits of", *_FIGURES, "similarity", "limits")
    for half in chosen_on_half(choices):
        halves.add_row(
            half.profile, str(half.number), "other half", *_figures(half.chosen), *_shown(half.choice)
        )
        halves.add_row("", "", "the profile", *_figures(half.shipped), "", "")
    console = Console(width=210, highlight=False)
    console.print(machine_line())
    console.print(others, halves, sep="\n")


def _figures(judged: Judged) -> list[str]:
    pairs, drops = counts_of(judged.pairs), counts_of(judged.drops)
    labels, precision, _ = pairs.cells()
    of_drops, precision_of_drops, _ = drops.cells()
    return [labels, precision, str(pairs.recall), of_drops, precision_of_drops]


def _shown(choice: Choice) -> tuple[str, str]:
    limits = ", ".join(f"{key} {getattr(choice.differences, key)}" for key in TRIED)
    return f"{choice.similarity / SIMILARITY_SCALE:g}", limits


if __name__ == "__main__":
    main()
