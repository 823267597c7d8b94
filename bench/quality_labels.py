"""What readers call the same, by profile; and hard pairs: the tables of docs/BENCHMARKS.md on labels.

    python -m bench.quality_labels [--without SET]

Each judged pair is two messages in a scope of its own under the settings of its set's profile; beside that it
stands in a run over its whole set; each hard pair is judged under `microblog`. Data: TWINSIEVE_DATA
(tests/accuracy/data_sets.py). Only ids and counts are printed.
"""

from __future__ import annotations

import argparse

from rich.console import Console

from bench.machine import machine_line
from tests.accuracy.labels import (
    ALPHABETS,
    PRECISION_BEFORE,
    PROFILES,
    hard_labels,
    judged_labels,
    labels_in_runs,
)
from twinsieve.pipeline.evaluate.judged import judged_tables, precision


def main() -> None:
    """Print machine and tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--without", default="", help="leave this set out")
    without = parser.parse_args().without
    verdicts = judged_labels(without)
    console = Console(width=150, highlight=False)
    console.print(machine_line())
    console.print(*judged_tables(verdicts), sep="\n")
    for name in sorted(PRECISION_BEFORE.keys() & {one.pair.set for one in verdicts}):
        now = precision(one for one in verdicts if one.pair.set == name)
        console.print(f"{name}: precision {PRECISION_BEFORE[name]:.3f} at 1e013b6, {now} now")
    microblogs = [one for one in verdicts if PROFILES[one.pair.set] == "microblog"]
    console.print("weibo and comments together:", judged_tables(microblogs)[0], sep="\n")
    alphabets = [one for one in verdicts if one.pair.set in ALPHABETS]
    console.print("alphabets together:", judged_tables(alphabets)[0], sep="\n")
    unprofiled = judged_labels(without, profile="default")
    alphabets = [one for one in unprofiled if one.pair.set in ALPHABETS]
    console.print("with no profile written:", judged_tables(unprofiled)[0], sep="\n")
    console.print("alphabets together:", judged_tables(alphabets)[0], sep="\n")
    console.print("inside runs over whole sets:", judged_tables(labels_in_runs(without))[0], sep="\n")
    right, none, count = hard_labels()
    console.print(f"hard pairs: {right} of {count} get the wanted verdict; kinds at 0: {', '.join(none)}")


if __name__ == "__main__":
    main()
