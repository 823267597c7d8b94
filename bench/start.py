"""Time from the command `dedup` to its first row, of two installed versions of twinsieve, measured in turn.

    python -m bench.start OLD NEW [--pairs 5] [--first]

OLD, NEW: the programs, as for `bench.paired`. The input is ten made-up English sentences.
Beside each pair stands the time of `import numba` by this interpreter, which both need to load their kernels.
`--first`: the first run after an installation instead, with an empty folder for kernels each time.
One uncounted run of each program fills the page cache, and compiles the kernels.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.machine import machine_line
from bench.paired import write_sentences

_SENTENCES = 10


def seconds_to_first_row(program: Path, source: Path, environment: Mapping[str, str]) -> float:
    """Run `dedup` once, and wait for the first byte of its output."""
    words = [program.absolute(), "dedup", "-q", source, "-o", "-"]
    began = perf_counter()
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as run:
        assert run.stdout is not None
        first = run.stdout.read(1)
        seconds = perf_counter() - began
        run.stdout.read()
    if run.returncode or not first:
        sys.exit(f"{program} wrote no row, exit code {run.returncode}")
    return seconds


def import_seconds() -> float:
    """How long an interpreter takes that imports Numba and ends."""
    began = perf_counter()
    subprocess.run([sys.executable, "-c", "import numba"], check=True)
    return perf_counter() - began


def main() -> None:
    """Prints machine, every pair and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--first", action="store_true")
    options = parser.parse_args()
    print(machine_line())
    print(
        f"input: {_SENTENCES} sentences; {'kernels are compiled' if options.first else 'kernels are there'}"
    )
    rows: list[tuple[float, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "ten.jsonl")
        write_sentences(_SENTENCES, source)
        for program in (options.old, options.new):
            seconds_to_first_row(program, source, os.environ)
        import_seconds()
        for pair in range(options.pairs):
            seconds = []
            for name in ("old", "new"):
                environment = dict(os.environ)
                if options.first:
                    environment["NUMBA_CACHE_DIR"] = str(Path(folder, f"{name}{pair}"))
                seconds.append(seconds_to_first_row(getattr(options, name), source, environment))
            rows.append((*seconds, import_seconds()))
            old, new, numba = rows[-1]
            print(
                f"old {old:.2f} s, new {new:.2f} s, {new / old:.2f}; import numba {numba:.2f} s", flush=True
            )
    ratio = median(new / old for old, new, _ in rows)
    more = median(new - numba for _, new, numba in rows)
    print(f"median: {ratio:.2f} of the old time; {more:+.2f} s beside import numba")


if __name__ == "__main__":
    main()
