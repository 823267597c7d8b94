"""`python -m tests.mutants`: each known defect in a copy of the checkout; exit code 1 when the tests let one live.

With --drawn, mutants drawn at random in their place: many of them change nothing that a test could see.
A mutant whose text is no longer there fails too. A run that outlasts its limit counts as dead: it hangs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from tests.mutants.drawn import DrawnMutant, drawn
from tests.mutants.every import EVERY
from tests.mutants.mutant import Mutant, MutantError

_ROOT = Path(__file__).resolve().parents[2]
_LEFT_BEHIND = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "__pycache__", ".*_cache", ".hypothesis"
)


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of those to try")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--limit-s", type=float, default=600.0, help="seconds for the tests of one")
    parser.add_argument(
        "--at-once", action="store_true", help="do not try first whether the tests pass unchanged"
    )
    parser.add_argument("--drawn", type=int, default=0, metavar="N", help="N mutants drawn from --under")
    parser.add_argument("--under", default="stages/differ", help="a folder of the program")
    parser.add_argument("--seed", type=int, default=20261130)
    options = parser.parse_args()
    every: Sequence[Mutant | DrawnMutant] = EVERY
    if options.drawn:
        every = drawn(_ROOT, options.under, options.drawn, options.seed)
    chosen = [mutant for mutant in every if options.only in mutant.name]
    with tempfile.TemporaryDirectory(prefix="twinsieve-mutants-") as folder:
        trees: Queue[Path] = Queue()
        for number in range(options.jobs):
            shutil.copytree(_ROOT, Path(folder) / str(number), symlinks=True, ignore=_LEFT_BEHIND)
            trees.put(Path(folder) / str(number))
        every_test = sorted({test for mutant in chosen for test in mutant.tests})
        interpreted = all(mutant.interpreted for mutant in chosen)
        if not options.at_once and _fails(Path(folder) / "0", every_test, options.limit_s * 3, interpreted):
            print(f"without any mutant, some of these fail already: {' '.join(every_test)}")
            return 1

        def judge(mutant: Mutant) -> str:
            tree = trees.get()
            started_s = time.monotonic()
            try:
                said = _try(mutant, tree, options.limit_s)
            finally:
                trees.put(tree)
            print(f"{said:12} {time.monotonic() - started_s:5.0f} s  {mutant.name}", flush=True)
            return said

        with ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(judge, chosen))
    counts = {said: results.count(said) for said in sorted(set(results))}
    print(f"{len(chosen)} mutants: " + ", ".join(f"{count} {said}" for said, count in counts.items()))
    return 1 if {"lives", "does not fit"} & counts.keys() else 0


def _try(mutant: Mutant | DrawnMutant, tree: Path, limit_s: float) -> str:
    """What became of it: dead, hangs (dead too), lives, does not fit."""
    place = tree / mutant.path
    try:
        changed = mutant.applied(tree)
    except MutantError as error:
        print(error)
        return "does not fit"
    before = place.read_bytes()
    place.write_text(changed, "utf-8")
    try:
        return _fails(tree, mutant.tests, limit_s, mutant.interpreted) or "lives"
    finally:
        place.write_bytes(before)


def _fails(tree: Path, tests: Sequence[str], limit_s: float, interpreted: bool) -> str:
    """ "dead" or "hangs", empty where all pass. interpreted: without compiled kernels"""
    plain = {"NUMBA_DISABLE_JIT": "1"} if interpreted else {}
    command = [
        sys.executable,
        "-B",
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *(("-W", "ignore::RuntimeWarning") if interpreted else ()),
        *tests,
    ]
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=os.environ | plain,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "hangs"
    # A drawn mutant may not even be imported; the unchanged tree was, before.
    if process.returncode > 1 and not interpreted:
        raise SystemExit(f"pytest cannot run here:\n{said[-2000:]}")
    return "dead" if process.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
