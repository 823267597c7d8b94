"""`python -m tests.forged --mutations 200`: forged files of each kind with right checksums; a table of what came of
them. Exit code 1 if a process crashed, hung, raised, took too much memory, or judged otherwise than what is left says.

`--place index --kind segment --first 17 --mutations 1` plays one again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.forged.places import KINDS, Place, small
from tests.service.test_changed_settings import base
from twinsieve.pipeline.service.build import make_scheme

_GOOD = ("refused", "used")


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.forged", description=__doc__)
    parser.add_argument("--mutations", type=int, default=200, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--place", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--kind", nargs="*", help="kinds of files; all")
    parser.add_argument("--show", action="store_true", help="one line for each mutation")
    options = parser.parse_args()
    broken = 0
    print(f"{'state':<26}{'file':<10}{'forged':>8}{'refused':>9}{'used':>7}{'broken':>8}{'seconds':>9}")
    for place in options.place:
        with (
            tempfile.TemporaryDirectory(prefix="twinsieve-forged-") as folder,
            pytest.MonkeyPatch.context() as patch,
        ):
            small(patch)
            made = Place(place, Path(folder), make_scheme(base("unused")))
            for kind in KINDS[place]:
                if options.kind and kind not in options.kind:
                    continue
                began_s, counts = time.monotonic(), Counter[str]()
                lines = []
                for seed in range(options.first, options.first + options.mutations):
                    outcome = made.play(kind, seed)
                    counts[outcome.how if outcome.how in _GOOD else "broken"] += 1
                    if outcome.how not in _GOOD or options.show:
                        lines.append(f"  {seed} {outcome.how}: {outcome.did[:150]} => {outcome.said[:400]}")
                broken += counts["broken"]
                print(
                    f"{place:<26}{kind:<10}{options.mutations:>8}{counts['refused']:>9}{counts['used']:>7}"
                    f"{counts['broken']:>8}{time.monotonic() - began_s:>9.0f}",
                    flush=True,
                )
                for line in lines:
                    print(line, flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
