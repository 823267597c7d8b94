"""`dedup` and its peers on one file of generated posts, in turn; each output is held against the truth."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import NamedTuple

import orjson

from bench.peers.installation import Installation
from bench.tickets import POOLS, make_rows
from twinsieve.pipeline.tools.evaluate.judged import Share

_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = (sys.executable, "-m", "twinsieve", "dedup", "-q")
_LOOPS = {
    "datasketch": "datasketch_lsh",
    "rensa": "rensa_deduplicator",
    "rensa + rapidfuzz": "rensa_rapidfuzz",
    "gaoya": "gaoya_lsh",
    "simhash": "simhash_index",
    "text-dedup": "text_dedup",
}
_SEED = 20261130
_OFTEN_EQUAL = "short"
"""A kind of generated posts; many of them are equal by chance."""


class Score(NamedTuple):
    """What an output lacks. It does not matter which of the posts that repeat each other is left.

    exact: share of repeated texts that were dropped; near: of texts made from one another, but for one each
    lost: share of posts, without short ones, of which neither the post nor anything made from it is left
    """

    exact: Share
    near: Share
    lost: Share


class Run(NamedTuple):
    """seconds: from start to end; cpu: seconds of all processes; mib: most memory of one"""

    seconds: float
    cpu: float
    mib: float


class Contestant(NamedTuple):
    """What is shown of one program: its runs, and the score, which must be the same in each."""

    name: str
    runs: list[Run]
    score: Score

    def rate(self, rows: int) -> float:
        """Rows a second, the median of the runs."""
        return rows / median(run.seconds for run in self.runs)


def contestants(
    source: Path, folder: Path, peers: Installation, times: int
) -> tuple[list[Contestant], dict[str, str]]:
    """All programs that ran, and the errors of those that did not, by name.

    folder: for outputs; times: runs of each; one more of this program comes first, which may compile
    """
    commands = _commands(source, peers)
    truth = [orjson.loads(line) for line in source.read_bytes().splitlines()]
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    scores: dict[str, Score] = {}
    errors = {name: error for name, error in peers.errors.items() if name in commands}
    for turn in range(times + 1):
        for name, command in commands.items():
            if name in errors or not (turn or name.startswith("twinsieve")):
                continue
            output = folder / f"{turn % 2}.jsonl"
            said = _run([*command, output])
            if isinstance(said, str):
                errors[name] = said
                continue
            score = score_of(truth, output)
            if scores.setdefault(name, score) != score:
                errors[name] = f"other rows in run {turn} than before"
            elif turn:
                runs[name].append(said)
    return [Contestant(name, runs[name], scores[name]) for name in commands if name not in errors], errors


def _commands(source: Path, peers: Installation) -> dict[str, list[str | Path]]:
    """What each program is started with, but for its output, by name."""
    commands: dict[str, list[str | Path]] = {
        "twinsieve": [*_PROGRAM, source, "-o"],
        "twinsieve, microblog": [*_PROGRAM, "--profile", "microblog", source, "-o"],
    }
    for name, loop in _LOOPS.items():
        commands[name] = [peers.python, "-m", "bench.peers.loop", loop, source]
    return commands


def traps_dropped(rows: int, folder: Path, peers: Installation, names: Iterable[str]) -> dict[str, Share]:
    """Share of the traps of `bench.tickets` (another number, name, place, denial …) that each program drops.

    folder: for input and output; names: of the programs that run
    """
    made = make_rows(rows, Random(_SEED))
    source, output = folder / "tickets.jsonl", folder / "tickets.kept.jsonl"
    source.write_bytes(
        b"".join(orjson.dumps({"id": str(n), "text": row.text}) + b"\n" for n, row in enumerate(made))
    )
    traps = [str(n) for n, row in enumerate(made) if row.kind in POOLS]
    found = {}
    for name, command in _commands(source, peers).items():
        if name in names and not isinstance(_run([*command, output]), str):
            kept = {orjson.loads(line)["id"] for line in output.read_bytes().splitlines()}
            found[name] = Share(sum(trap not in kept for trap in traps), len(traps))
    return found


def score_of(truth: list[Mapping[str, str]], output: Path) -> Score:
    """Compare the rows of an output with what was planted."""
    kept = {orjson.loads(line)["id"] for line in output.read_bytes().splitlines()}
    root: dict[str, str] = {}
    texts: dict[str, dict[str, list[bool]]] = {}
    for post in truth:
        first = root[post["id"]] = root.get(post.get("duplicate_of", ""), post["id"])
        if post["kind"] != _OFTEN_EQUAL:
            texts.setdefault(first, {}).setdefault(post["text"], []).append(post["id"] in kept)
    groups = [[any(rows) for rows in group.values()] for group in texts.values()]
    return Score(
        _dropped([rows for group in texts.values() for rows in group.values()]),
        _dropped(groups),
        Share(sum(not any(group) for group in groups), len(groups)),
    )


def _dropped(groups: list[list[bool]]) -> Share:
    """Share dropped of what need not be kept: all but one of each group. groups: whether each is kept"""
    dropped = sum(len(group) - max(1, sum(group)) for group in groups)
    return Share(dropped, sum(len(group) - 1 for group in groups))


def _run(command: list[str | Path]) -> Run | str:
    """One run, or the last line of its error."""
    began = perf_counter()
    with subprocess.Popen(
        command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        seconds = perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        return (said.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
