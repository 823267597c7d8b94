"""`python -m tests.nasty --runs 5000`: hostile runs, one line for each that broke a promise; exit code 1 if any did.

A run is told by its seed and its kinds alone: `--first 77 --runs 1` plays number 77 again.
`--batches 100000` gives that many mutated record batches to the kernel that finds records (`batches.py`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.nasty.batches import fuzz
from tests.nasty.chaos import Found, run
from tests.nasty.kinds import Kind

_MAX_SHOWN = 20


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.nasty", description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", nargs="*", type=Kind, default=sorted(Kind), choices=sorted(Kind))
    parser.add_argument("--trace", action="store_true", help="show where each broken promise was noticed")
    parser.add_argument("--batches", type=int, default=0, help="mutated record batches, in place of runs")
    options = parser.parse_args()
    if options.batches:
        fuzzed = fuzz(options.batches, options.first + 1)
        print(
            f"{fuzzed.batches} mutated batches: {fuzzed.accepted} were taken, {fuzzed.compared} of these "
            "compared with what kafka-python reads; none was read outside"
        )
        return 0
    print(f"seeds {options.first}..{options.first + options.runs - 1}, kinds: {', '.join(options.kinds)}")
    started_s = time.monotonic()
    broken: Counter[str] = Counter()
    found: list[Found] = []
    for seed in range(options.first, options.first + options.runs):
        with tempfile.TemporaryDirectory(prefix="twinsieve-nasty-") as folder:
            try:
                found.append(run(seed, Path(folder), options.kinds))
            except Exception as error:  # noqa: BLE001 (whatever it is, the next seed is tried)
                said = " ".join(str(error).split())
                broken[f"{type(error).__name__}: {said[:40]}"] += 1
                print(f"seed {seed}: {type(error).__name__}: {said[:600]}")
                if options.trace:
                    traceback.print_exc(limit=-6)
    for one in found:
        if one.copies:
            shown = ", ".join(one.copies[:_MAX_SHOWN]) + ", …" * (len(one.copies) > _MAX_SHOWN)
            print(f"seed {one.seed}: came out again, for retention took the record of its equal: {shown}")
    print(
        f"{options.runs} runs in {time.monotonic() - started_s:.0f} s: {sum(broken.values())} broke a promise, "
        f"{sum(one.messages for one in found)} messages judged in the others, "
        f"{sum(bool(one.stops) for one in found)} stopped where a record was lost, "
        f"{sum(len(one.copies) for one in found)} copies of messages whose record retention took, "
        f"{sum(one.answered for one in found)} rows judged with answers of shards"
    )
    excused = sum((one.excused for one in found), Counter[str]())
    for said, count in excused.most_common():
        print(f"{count:5} × {said} (a promise leaves it open)")
    for said, count in broken.most_common():
        print(f"{count:5} × {said}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
