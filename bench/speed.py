"""Posts a second of the whole `dedup` command, by step, beside a loop of libraries in the same run.

    python -m bench.speed [FILE ...] [--runs 3]

FILE: JSON lines, a table each; default: weibo_dev.jsonl.gz in the folder that TWINSIEVE_DATA names. Start-up
is apart: interpreter, imports and kernels from their cache (a first run may compile them; it is not counted).
The loop is what one would write with rensa's MinHash LSH and rapidfuzz: regular expressions, a dict of equal
bodies, 96 hashes of characters and pairs in 24 bands, candidates verified at .85, leaders only.
The row `digests` is apart: the digests of all bodies, without a secret and with one, in turn.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import orjson
from rapidfuzz import fuzz
from rensa import RMinHash, RMinHashLSH
from rich.console import Console
from rich.table import Table

from bench.command import stats_of
from bench.machine import machine_line
from bench.peers.bodies import MIN_LENGTH, SIMILARITY, body_of, grams
from tests.accuracy.data_sets import WEIBO
from twinsieve.stages.fingerprint.digest import digests
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.secret import Secret
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

_BATCH, _TURNS = 4_096, 9


def command_seconds(path: Path, folder: Path) -> dict[str, Any]:
    """What `--stats` of one run says, and the seconds from its start to its end as `wall`."""
    began = perf_counter()
    found = stats_of(path, folder / "unique.jsonl")
    return found | {"wall": perf_counter() - began}


def library_loop(path: Path, out: Path) -> tuple[int, int, dict[str, float]]:
    """Rows, rows dropped, and seconds by step of the loop of libraries."""
    index = RMinHashLSH(threshold=0.5, num_perm=96, num_bands=24)
    seen: set[str] = set()
    kept: list[str] = []
    seconds = dict.fromkeys(("read", "text", "fingerprints", "near", "write"), 0.0)
    rows = dropped = 0
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines, out.open("wb") as written:
        marks = [perf_counter()]
        for line in lines:
            rows += 1
            text = orjson.loads(line)["text"]
            marks = [marks[-1], perf_counter()]
            body = body_of(text)
            marks.append(perf_counter())
            repeats = body in seen if body else False
            near = not repeats and len(body) >= MIN_LENGTH
            if near:
                minhash = RMinHash(96, 42)
                minhash.update(grams(body))
                marks.append(perf_counter())
                repeats = any(
                    fuzz.ratio(body, kept[one], score_cutoff=100 * SIMILARITY) for one in index.query(minhash)
                )
                if not repeats:
                    index.insert(len(kept), minhash)
                    kept.append(body)
            else:
                marks.append(marks[-1])
            marks.append(perf_counter())
            if repeats:
                dropped += 1
            else:
                seen.add(body)
                written.write(line)
            marks.append(perf_counter())
            for step, (start, end) in zip(seconds, pairwise(marks), strict=True):
                seconds[step] += end - start
    return rows, dropped, seconds


def digest_micros(path: Path) -> tuple[int, dict[str, float]]:
    """Number of bodies, and µs a body for their digests, without a secret and with one: medians of turns."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        texts = [orjson.loads(line)["text"] for line in lines]
    scheme = Scheme(SchemeConfig())
    batches = [scheme.bodies(texts[low : low + _BATCH]) for low in range(0, len(texts), _BATCH)]
    configs = {"mmh3": DigestConfig(), "SipHash": DigestConfig(secret=Secret.of_seed(1))}
    seconds: dict[str, list[float]] = {name: [] for name in configs}
    for _ in range(_TURNS + 1):
        for name, config in configs.items():
            began = perf_counter()
            for bodies in batches:
                digests(config, bodies)
            seconds[name].append(perf_counter() - began)
    # The first turn loads the kernel.
    return len(texts), {name: median(each[1:]) / len(texts) * 1e6 for name, each in seconds.items()}


def measure_digests(path: Path, console: Console) -> None:
    """Print the row of digests of one file."""
    rows, micros = digest_micros(path)
    console.print(f"input: {path.name}, {rows:,} bodies, {_BATCH:,} a batch; median of {_TURNS} in turn")
    table = Table("step", title="µs a row", title_justify="left")
    for name in (*micros, "difference"):
        table.add_column(name, justify="right")
    plain, keyed = micros.values()
    table.add_row("digests", f"{plain:.3f}", f"{keyed:.3f}", f"{keyed - plain:+.3f}")
    console.print(table)


def measure(path: Path, times: int, console: Console) -> None:
    """Print the table of one file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command_seconds(path, folder)
        runs = [command_seconds(path, folder) for _ in range(times)]
        loops = [library_loop(path, folder / "loop.jsonl") for _ in range(times)]
    best = min(runs, key=lambda run: run["seconds"])
    rows, dropped, seconds = min(loops, key=lambda loop: sum(loop[2].values()))
    console.print(f"input: {path.name}, {rows:,} rows; best of {times} runs each, one process")
    table = Table(title="µs a row", title_justify="left")
    table.add_column("step")
    table.add_column("twinsieve dedup", justify="right")
    table.add_column("rensa + rapidfuzz loop", justify="right")
    for step, ours in ({name: name for name in seconds} | {"near": "judge"}).items():
        micros = best["micros_per_row"][ours]
        label = "exact and near" if step == "near" else step
        table.add_row(label, f"{micros:.2f}", f"{seconds[step] / rows * 1e6:.2f}")
    loop_rate = rows / sum(seconds.values())
    table.add_row("all", f"{1e6 / best['rows_per_second']:.2f}", f"{1e6 / loop_rate:.2f}")
    table.add_row("rows a second", f"{best['rows_per_second']:,}", f"{loop_rate:,.0f}")
    dropped_share = (best["exact"] + best["near"]) / best["rows"]
    table.add_row("dropped", f"{dropped_share:.1%}", f"{dropped / rows:.1%}")
    table.add_row("start-up, seconds", f"{best['wall'] - best['seconds']:.2f}", "")
    console.print(table)


def main() -> None:
    """Print the machine, and two tables for each file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    files: list[Path] = given.files or [WEIBO.texts]
    for path in files:
        if not path.is_file():
            sys.exit(f"{path}: is no file; name one, or the folder of the data in TWINSIEVE_DATA")
    console = Console(width=110, highlight=False)
    console.print(machine_line())
    for path in files:
        measure(path.resolve(), given.runs, console)
        measure_digests(path.resolve(), console)


if __name__ == "__main__":
    main()
