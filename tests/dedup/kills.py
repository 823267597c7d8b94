"""Kills of a run over files at random moments, and what an unbroken run would have left.

    python -m tests.dedup.kills [--kills 50] [--seed 1]

Four files go through one state, each with `--duplicates`, `--clusters` and `--dead-letter`, every other one with
`--mark`. A run is killed at a random moment after it took the state's lock, and repeated until it ends. After a
kill an output is there as a whole or not at all, and nothing else lies beside it. In the end all outputs and the
leaders are byte for byte those of unbroken runs, and the state's folder has no file that its manifest does not name.
The files of a state have random names; that their content is right shows in the outputs of the next run, so no run
over the last file is killed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep

from tests.calling import SMALL
from tests.generated_posts import generate
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.stages.formats import RUN

_ROOT = Path(__file__).resolve().parents[2]
_DAYS, _ROWS = 4, 6000


@dataclass(slots=True)
class Killed:
    """What came of it; problems: in words, none where all is as it must be."""

    kills: int = 0
    struck: int = 0
    problems: list[str] = field(default_factory=list)


def kill_runs(folder: Path, kills: int, seed: int, rows: int = _ROWS) -> Killed:
    """Kill runs `kills` times in this empty folder.

    kills: at least this many; `struck` are those that met a run that had not ended by itself
    rows: of each file
    """
    rng = random.Random(seed)
    inputs = _inputs(folder / "inputs", rows)
    whole, broken = folder / "whole", folder / "broken"
    whole.mkdir()
    broken.mkdir()
    found = Killed()
    # The shortest: where a busy machine made one long, later runs would end before they are killed.
    lasts_s = min([_unbroken(one, whole) for one in inputs])
    expected = _content(whole)
    while found.kills < kills:
        for path in sorted(broken.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        for one in inputs:
            ended = False
            while not ended:
                is_killed = found.kills < kills and one != inputs[-1]
                kill_after_s = rng.uniform(0.0, lasts_s * 1.1) if is_killed else None
                ended = _ended(one, broken, found, kill_after_s)
                found.problems += _half_done(_content(broken), expected)
            found.problems += _unnamed(broken / "state")
        left = _content(broken)
        found.problems += [f"{name}: differs" for name, one in expected.items() if left.get(name) != one]
    return found


def _inputs(folder: Path, rows: int) -> list[Path]:
    folder.mkdir()
    posts = [to_json(post) for post in generate(_DAYS * rows, seed=3)]
    for at in range(0, len(posts), 97):
        posts[at] = b"{broken"
    names = [folder / f"{day}.jsonl" for day in range(_DAYS)]
    for day, name in enumerate(names):
        name.write_bytes(b"\n".join(posts[day * rows : (day + 1) * rows]) + b"\n")
    return names


def _words(source: Path, folder: Path) -> list[str]:
    options = {"-o": "out", "--duplicates": "dropped", "--clusters": "clusters", "--dead-letter": "dead"}
    files = [
        word for flag, name in options.items() for word in (flag, str(folder / f"{source.stem}.{name}.jsonl"))
    ]
    marked = ["--mark"] if int(source.stem) % 2 == 0 else []
    call = [sys.executable, "-m", "twinsieve", "dedup", str(source), "-q", *marked, *files]
    return [*call, "--state", str(folder / "state"), *SMALL]


def _unbroken(source: Path, folder: Path) -> float:
    """Seconds of a run from the state's lock on; start-up is apart, or most kills would meet it."""
    with subprocess.Popen(_words(source, folder), cwd=_ROOT, stderr=subprocess.DEVNULL) as running:
        _wait_for_lock(running, folder)
        began = perf_counter()
        assert running.wait() == 0
    return perf_counter() - began


def _wait_for_lock(running: subprocess.Popen[bytes], folder: Path) -> None:
    while running.poll() is None and not _has_lock(running.pid, folder / "state" / "lock"):
        sleep(0.001)


def _has_lock(process: int, lock: Path) -> bool:
    """Whether this process holds the lock; a lock file alone may be left from a run that was killed."""
    if not lock.exists():
        return False
    held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(words[1] == "FLOCK" and words[4] == str(process) for words in held if len(words) > 4)


def _ended(source: Path, folder: Path, found: Killed, kill_after_s: float | None) -> bool:
    """Whether the run came to its end; one that did before it was killed says so when it is repeated."""
    with subprocess.Popen(_words(source, folder), cwd=_ROOT, stderr=subprocess.PIPE) as running:
        _wait_for_lock(running, folder)
        try:
            _, said = running.communicate(timeout=kill_after_s)
        except subprocess.TimeoutExpired:
            found.kills += 1
            os.kill(running.pid, signal.SIGKILL)
            _, said = running.communicate()
    if running.returncode == -signal.SIGKILL:
        found.struck += 1
        return False
    if running.returncode == 2 and b"read this content to its end" in said:
        return True
    if running.returncode:
        found.problems.append(f"{source.name}: exit code {running.returncode}: {said.decode()}")
    return True


def _half_done(content: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """What a killed run left behind, and outputs that are not there as a whole.

    State and leaders grow by day; a generation of leaders that is forgotten goes with the next run at the latest.
    """
    kept = [name for name in content if not name.startswith("state/")]
    left = [f"{name}: was left behind" for name in kept if name not in expected]
    outputs = {name: one for name, one in content.items() if name.endswith(".jsonl")}
    return left + [f"{name}: is not whole" for name, one in outputs.items() if one != expected.get(name, one)]


def _unnamed(state: Path) -> list[str]:
    """What lies in the folder of a state after a run that came to its end, and what is missing there."""
    described = json.loads(RUN.read(io.BytesIO((state / "state").read_bytes())))
    wanted = {"state", *(file[0] for file in described["files"])}
    leaders = described["about"]["leaders"]
    wanted |= {f"leaders-{mark[0]}.{kind}" for mark in leaders for kind in ("rows", "entries")}
    there = {path.name for path in state.iterdir()}
    return [f"state/{name}: was left behind" for name in there - wanted] + [
        f"state/{name}: is missing" for name in wanted - there
    ]


def _content(folder: Path) -> dict[str, bytes]:
    """All files but those of the state, whose names are random; its leaders are among them."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and (path.parent.name != "state" or path.name.startswith("leaders-"))
    }


def main() -> int:
    """The exit code: 1 if anything was lost, doubled or left behind."""
    parser = argparse.ArgumentParser(description="Kills runs over files at random moments.")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = kill_runs(Path(folder), given.kills, given.seed)
    sys.stdout.write(
        f"{found.kills} kills, {found.struck} of runs under way; {len(found.problems)} problems\n"
    )
    for problem in found.problems:
        sys.stdout.write(f"{problem}\n")
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
