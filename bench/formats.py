"""The same posts as JSON lines, Parquet, TSV, a JSON array, a folder and .xz: which rows are kept, how fast.

    python -m bench.formats [--messages 20000] [--seed 1] [--runs 1]

Posts are those of `twinsieve generate`. Exit code 1 if a format keeps other rows than JSON lines do.
Rows a second are those of the whole run without its start; `read` and `write` are parts of it.
Runs of the formats alternate, and of each format the fastest counts: other work only makes a run slower.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

from bench.command import stats_of
from bench.machine import machine_line
from twinsieve.pipeline.tools.generate.stream import generate

_FILES = 100
Posts = list[dict[str, Any]]


def _lines(posts: Posts) -> bytes:
    return b"".join(json.dumps(post, ensure_ascii=False).encode() + b"\n" for post in posts)


def _write_jsonl(posts: Posts, folder: Path) -> Path:
    path = folder / "posts.jsonl"
    path.write_bytes(_lines(posts))
    return path


def _write_xz(posts: Posts, folder: Path) -> Path:
    path = folder / "posts.jsonl.xz"
    path.write_bytes(lzma.compress(_lines(posts), preset=1))
    return path


def _write_array(posts: Posts, folder: Path) -> Path:
    path = folder / "posts.json"
    path.write_text(json.dumps(posts, ensure_ascii=False, indent=1), "utf-8")
    return path


def _write_tsv(posts: Posts, folder: Path) -> Path:
    path = folder / "posts.tsv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(posts[0]), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(posts)
    return path


def _write_parquet(posts: Posts, folder: Path) -> Path:
    path = folder / "posts.parquet"
    parquet.write_table(pa.Table.from_pylist(posts), path)
    return path


def _write_folder(posts: Posts, folder: Path) -> Path:
    path = folder / "posts"
    path.mkdir()
    for number in range(_FILES):
        part = posts[number * len(posts) // _FILES : (number + 1) * len(posts) // _FILES]
        (path / f"{number:03}.jsonl").write_bytes(_lines(part))
    return path


def _read_lines(path: Path) -> list[str]:
    return [str(json.loads(line)["id"]) for line in path.read_bytes().splitlines()]


def _read_tsv(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as stream:
        return [row["id"] for row in csv.DictReader(stream, delimiter="\t")]


def _read_parquet(path: Path) -> list[str]:
    return [str(one) for one in parquet.read_table(path, columns=["id"]).column("id").to_pylist()]


_FORMATS: dict[str, tuple[Callable[[Posts, Path], Path], str, Callable[[Path], list[str]]]] = {
    "JSON lines": (_write_jsonl, "out.jsonl", _read_lines),
    "Parquet": (_write_parquet, "out.parquet", _read_parquet),
    "TSV": (_write_tsv, "out.tsv", _read_tsv),
    "JSON array, indented": (_write_array, "out.jsonl", _read_lines),
    f"folder of {_FILES} files": (_write_folder, "out.jsonl", _read_lines),
    "JSON lines, .xz": (_write_xz, "out.jsonl", _read_lines),
}


def main() -> None:
    """Print machine and table; exit code 1 if formats do not agree."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    posts = list(generate(given.messages, seed=given.seed))
    sizes: dict[str, int] = {}
    runs: dict[str, list[tuple[list[str], Any]]] = {name: [] for name in _FORMATS}
    with tempfile.TemporaryDirectory() as where:
        sources: dict[str, Path] = {}
        for number, (name, (write, _, _)) in enumerate(_FORMATS.items()):
            folder = Path(where) / str(number)
            folder.mkdir()
            sources[name] = source = write(posts, folder)
            files = list(source.iterdir()) if source.is_dir() else [source]
            sizes[name] = sum(path.stat().st_size for path in files)
        for _ in range(given.runs):
            for name, (_, output, read) in _FORMATS.items():
                stats = stats_of(sources[name], Path(where) / output)
                runs[name].append((read(Path(where) / output), stats))
    table = Table("input", "size, MB", "rows", "kept", "same rows", "rows/s", "read, µs a row", "write")
    expected = runs[next(iter(_FORMATS))][0][0]
    differ = False
    for name, found in runs.items():
        same = all(kept == expected for kept, _ in found)
        differ = differ or not same
        kept, stats = max(found, key=lambda run: float(run[1]["rows_per_second"]))
        table.add_row(
            name,
            f"{sizes[name] / 1e6:.1f}",
            f"{stats['rows']:,}",
            f"{len(kept):,}",
            "yes" if same else "NO",
            f"{stats['rows_per_second']:,}",
            f"{stats['micros_per_row']['read']:.1f}",
            f"{stats['micros_per_row']['write']:.1f}",
        )
    console = Console(width=110, highlight=False)
    console.print(machine_line())
    console.print(f"input: twinsieve generate, {given.messages:,} posts, seed {given.seed}")
    console.print(f"the fastest of {given.runs} runs each")
    console.print(table)
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
