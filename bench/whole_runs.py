"""Near drops of runs over whole sets: draws some of them to be labelled, and counts the labels.

    python -m bench.whole_runs --draw SHEET.tsv [--most 70] [--seed 1]
    python -m bench.whole_runs LABELS.tsv

--draw: runs each set under its profile and writes near drops, drawn at random, at most one for each leader.
SHEET.tsv has the ids and both texts and must lie outside the project. Write `same` (right to drop),
`different` (wrong) or `unsure` in its column `label`.
LABELS.tsv: such a sheet, or any file with the columns set, later_id, earlier_id and label. Prints a line for
each set, and how many of the labelled pairs this version still drops: labels of another version say nothing
about drops that are new in this one. Data: TWINSIEVE_DATA. Only counts are printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from tests.accuracy.label_counts import whole_run_counts
from tests.accuracy.whole_runs import RUN_PROFILES, still_dropped, write_sheet
from twinsieve.pipeline.tools.evaluate.judged import read_judged
from twinsieve.stages.errors import SieveError, UsageError


def main() -> None:
    """Write a sheet, or print machine and table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("labels", nargs="?", type=Path, metavar="LABELS.tsv")
    what.add_argument("--draw", type=Path, metavar="SHEET.tsv")
    parser.add_argument("--most", type=int, default=70, help="drops of each set")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    try:
        if asked.draw is None:
            show(asked.labels)
        else:
            write_sheet(asked.draw, asked.most, asked.seed)
    except (SieveError, OSError) as error:
        parser.error(str(error))


def show(labels: Path) -> None:
    """Print the table of a file of labels. raises: UsageError for another file"""
    pairs = read_judged(labels)
    unknown = sorted({pair.set for pair in pairs} - RUN_PROFILES.keys())
    if unknown:
        raise UsageError(f"{labels}: no set is called {unknown[0]!r}; name one of {', '.join(RUN_PROFILES)}")
    table = Table("set", "profile", "right/wrong/unsure", "precision", "unsure as wrong", "still dropped")
    for name, counts in whole_run_counts(labels).items():
        some = [pair for pair in pairs if pair.set == name]
        table.add_row(name, RUN_PROFILES[name], *counts.cells(), f"{still_dropped(some)} of {len(some)}")
    console = Console(width=120, highlight=False)
    console.print(machine_line())
    console.print(table)


if __name__ == "__main__":
    main()
