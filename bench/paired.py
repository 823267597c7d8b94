"""Speed of two installed versions of twinsieve, measured in turn: five pairs, every ratio printed.

    python -m bench.paired OLD NEW [FILE] [--pairs 5]

OLD, NEW: the programs, for example `../before/.venv/bin/twinsieve` and `.venv/bin/twinsieve`.
FILE: JSON lines; default: weibo_dev.jsonl.gz in the folder that TWINSIEVE_DATA names.
One uncounted run of each program compiles the kernels, and start-up is never counted (`--stats`).
The machine's speed drifts, so quote the median ratio, not a rate.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.command import stats_of
from bench.machine import machine_line


def main() -> None:
    """Print machine, input, each pair and the median ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--pairs", type=int, default=5)
    given = parser.parse_args()
    data = os.environ.get("TWINSIEVE_DATA")
    posts: Path | None = given.file or (Path(data) / "weibo_dev.jsonl.gz" if data else None)
    if posts is None or not posts.is_file():
        sys.exit(f"{posts or 'no file given'}: name a file of JSON lines, or set TWINSIEVE_DATA")
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "unique.jsonl"
        programs = {"old": [given.old.absolute()], "new": [given.new.absolute()]}
        dropped = {}
        for label, program in programs.items():
            found = stats_of(posts.absolute(), out, program)
            dropped[label] = found["exact"] + found["near"]
        print(machine_line())
        print(f"input: {posts.name}, {found['rows']:,} rows")
        print(f"dropped: old {dropped['old']:,}, new {dropped['new']:,}")
        ratios = []
        for pair in range(1, given.pairs + 1):
            order = ("old", "new") if pair % 2 else ("new", "old")
            runs = {label: stats_of(posts.absolute(), out, programs[label]) for label in order}
            rates = {label: run["rows_per_second"] for label, run in runs.items()}
            ratios.append(rates["new"] / rates["old"])
            print(f"pair {pair}: old {rates['old']:,}/s, new {rates['new']:,}/s, new/old {ratios[-1]:.3f}")
    print(f"median new/old {median(ratios):.3f}")


if __name__ == "__main__":
    main()
