"""Speed, CPU and memory of two installed versions of twinsieve, in turn: five pairs, every ratio printed.

    python -m bench.paired OLD NEW [FILE] [--sentences N] [--profile NAME] [--new-set KEY=VALUE] [--pairs 5]

OLD, NEW: the programs, for example `../before/.venv/bin/twinsieve` and `.venv/bin/twinsieve`.
FILE: JSON lines; default: weibo_dev.jsonl.gz in the folder that TWINSIEVE_DATA names. `--sentences`: so many
made-up English sentences instead, every fifth with one edit (`bench.recall_by_age`).
`--new-set`: a setting for NEW alone, to give it the defaults of OLD.
One uncounted run of each program compiles the kernels, and start-up counts for CPU only (`--stats`).
Memory that the system has to find first may halve the speed of a run. So before each run a gigabyte is
touched and given back. The machine's speed drifts all the same: quote the median ratio, not a rate.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from bench.command import stats_of
from bench.machine import machine_line
from bench.recall_by_age import edited, sentences

_TOUCHED = 1 << 30


class Run(NamedTuple):
    """One run: rows, rows a second without the start, CPU seconds with it, most bytes, dropped rows."""

    rows: int
    rate: float
    cpu: float
    peak: int
    dropped: int


def measured(program: Path, posts: Path, out: Path, flags: list[str]) -> Run:
    """Run `dedup` once."""
    np.ones(_TOUCHED, np.uint8)
    found = stats_of(posts.absolute(), out, [program.absolute()], flags)
    dropped = found["exact"] + found["near"]
    return Run(found["rows"], found["rows_per_second"], found["cpu_seconds"], found["peak_bytes"], dropped)


def write_sentences(count: int, path: Path) -> None:
    """Made-up English sentences, every fifth one an earlier one with an edit."""
    rng = random.Random(5)
    source, texts = sentences(rng), list[str]()
    with path.open("w") as lines:
        for number in range(count):
            is_copy = texts and rng.random() < 0.2
            texts.append(edited(rng.choice(texts), 1, rng) if is_copy else next(source))
            lines.write(json.dumps({"id": number, "text": texts[-1]}) + "\n")


def main() -> None:
    """Print machine, input, each pair and the median ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--sentences", type=int, default=0)
    parser.add_argument("--profile")
    parser.add_argument("--new-set", action="append", default=[])
    parser.add_argument("--pairs", type=int, default=5)
    given = parser.parse_args()
    both = ["--profile", given.profile] if given.profile else []
    flags = {"old": both, "new": [*both, *(word for pair in given.new_set for word in ("--set", pair))]}
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "unique.jsonl"
        if given.sentences:
            posts = Path(name) / "sentences.jsonl"
            write_sentences(given.sentences, posts)
        else:
            data = os.environ.get("TWINSIEVE_DATA")
            posts = given.file or Path(data or "") / "weibo_dev.jsonl.gz"
        if not posts.is_file():
            sys.exit(f"{posts}: name a file of JSON lines, or set TWINSIEVE_DATA")
        programs = {"old": given.old, "new": given.new}
        first = {label: measured(program, posts, out, flags[label]) for label, program in programs.items()}
        print(machine_line())
        print(f"input: {posts.name}, {first['new'].rows:,} rows, profile {given.profile or 'none'}")
        if given.new_set:
            print(f"settings of new: {', '.join(given.new_set)}")
        print(f"dropped: old {first['old'].dropped:,}, new {first['new'].dropped:,}")
        rates, cpus, peaks = [], [], []
        for pair in range(1, given.pairs + 1):
            order = ("old", "new") if pair % 2 else ("new", "old")
            runs = {label: measured(programs[label], posts, out, flags[label]) for label in order}
            old, new = runs["old"], runs["new"]
            rates.append(new.rate / old.rate)
            cpus.append(new.cpu / old.cpu)
            peaks.append(new.peak / old.peak)
            print(
                f"pair {pair}: old {old.rate:,.0f}/s {old.cpu:.2f} s, new {new.rate:,.0f}/s {new.cpu:.2f} s, "
                f"new/old {rates[-1]:.3f}, CPU {cpus[-1]:.3f}, memory {peaks[-1]:.3f}",
                flush=True,
            )
    print(f"median new/old {median(rates):.3f}, CPU {median(cpus):.3f}, memory {median(peaks):.3f}")


if __name__ == "__main__":
    main()
