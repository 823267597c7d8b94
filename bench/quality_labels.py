"""Labelled pairs under each profile, under none, and under guards alone; and hard pairs.

    python -m bench.quality_labels

Each pair is two messages in a scope of its own; each hard pair is judged under `microblog`. A language model
made the labels (docs/BENCHMARKS.md). Data: TWINSIEVE_DATA. Only counts are printed.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from tests.accuracy.label_counts import counts_of
from tests.accuracy.labels import GUARDS, drops_alone, hard_labels, judged_alone
from twinsieve.pipeline.tools.evaluate.judged import JudgedVerdict, judged_tables


def main() -> None:
    """Print machine and tables."""
    console = Console(width=150, highlight=False)
    console.print(machine_line())
    profiled = judged_alone()
    console.print(_table("profile of each set", profiled))
    console.print(*judged_tables([one for some in profiled.values() for one in some])[1:], sep="\n")
    console.print(_table("five more languages, on which no limit was chosen", judged_alone(more=True)))
    console.print(_table("no profile", judged_alone("default")))
    console.print(_table("similarity .85 and guards alone", judged_alone("default", GUARDS)))
    console.print(_table("near drops of whole runs of 282acbd1, judged as pairs", drops_alone()))
    right, none, count = hard_labels()
    console.print(f"hard pairs: {right} of {count} get the wanted verdict; kinds at 0: {', '.join(none)}")


def _table(title: str, verdicts: dict[str, list[JudgedVerdict]]) -> Table:
    title = f"{title}: {sum(map(len, verdicts.values())):,} pairs"
    table = Table("set", "right/wrong/unsure", "precision", "unsure as wrong", "recall", title=title)
    for name, some in verdicts.items():
        counts = counts_of(some)
        table.add_row(name, *counts.cells(), str(counts.recall))
    return table


if __name__ == "__main__":
    main()
