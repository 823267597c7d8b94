"""Seconds and peak memory that `dedup` takes for files that strangers made to hurt, each in two sizes.

    python -m bench.hostile_files [--folder DIR] [--gib .5]

The second size is twice the first. It should take about twice the time above that of the file of two rows,
which is start-up alone. The memory of a file of lines should stay. The memory of a row grows with the row;
`input.max_bytes` limits a row, and is raised where the table says so. Each run is a process of its own. The
last column is the exit code and what the command said, without its summary.

--folder: where the files are written, one at a time, and deleted again; by default that for temporary files
--gib: GiB of the smaller files with an open quote
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.machine import machine_line

_ROOT = Path(__file__).resolve().parent.parent
_PIECE_BYTES = 1 << 20
_YEARS = ("0000", "0001", "9999", "10000")
_HIGH_LIMIT = ("--set", "input.max_bytes=256MiB")
_ITEMS = ("--text-field", "data[*].text")
_AGE = ("--time-field", "created_at", "--set", "exact.window.age=24h")


class Case(NamedTuple):
    """A kind of file.

    name: of the file; content: its bytes in pieces, for a size; sizes: the two; flags: more of the command
    """

    what: str
    name: str
    content: Callable[[int], Iterator[bytes]]
    sizes: tuple[int, int]
    flags: tuple[str, ...] = ()


class Ran(NamedTuple):
    """What a run took. seconds: with start-up; peak_bytes: of memory; said: lines, without the summary"""

    code: int
    seconds: float
    peak_bytes: int
    said: str


def cases(gib: float) -> list[Case]:
    """All kinds of files. gib: of the smaller file with an open quote"""
    size = int(gib * (1 << 30))
    quote, columns, depths, items = (
        (size, 2 * size),
        (500_000, 1_000_000),
        (5_000, 10_000),
        (500_000, 1_000_000),
    )
    return [
        Case("two rows", "a.jsonl", _two_rows, (2, 2)),
        Case("bytes behind an open quote, in lines", "a.csv", _open_quote, quote),
        Case("the same, TSV", "a.tsv", _open_quote_of_tabs, quote),
        Case("the same, a quote opens in each line", "a.csv", _open_quotes, quote),
        Case("bytes behind an open quote, one line", "a.csv", _open_quote_in_a_line, quote),
        Case("columns", "a.csv", _columns, columns),
        Case("columns, limit raised", "a.csv", _columns, columns, _HIGH_LIMIT),
        Case("lists in lists, JSON lines", "a.jsonl", _nested_lists, depths),
        Case("lists in lists, JSON", "a.json", _nested_lists, depths),
        Case("objects in objects, JSON lines", "a.jsonl", _nested_objects, depths),
        Case("items of a list", "a.jsonl", _items, items, _ITEMS),
        Case("items of a list, limit raised", "a.jsonl", _items, items, (*_ITEMS, *_HIGH_LIMIT)),
        Case("numbers in a list", "a.jsonl", _numbers, items, _ITEMS),
        Case("rows of the years 0, 1, 9999, 10000", "a.jsonl", _years, (200_000, 400_000), _AGE),
    ]


def _two_rows(_size: int) -> Iterator[bytes]:
    yield b'{"text": "one row"}\n{"text": "another thing"}\n'


def _filled(first: bytes, line: bytes, size: int) -> Iterator[bytes]:
    """The first line, and then others up to this size. line: with a place for its number"""
    yield first
    written, number = len(first), 0
    while written < size:
        count = _PIECE_BYTES // len(line)
        piece = b"".join(line % each for each in range(number, number + count))
        yield piece
        written, number = written + len(piece), number + count


def _open_quote(size: int) -> Iterator[bytes]:
    yield from _filled(b'id,text\n0,"nobody closes this\n', b"%012d," + b"some words " * 90 + b"\n", size)


def _open_quote_of_tabs(size: int) -> Iterator[bytes]:
    yield from _filled(b'id\ttext\n0\t"nobody closes this\n', b"%012d\t" + b"some words " * 90 + b"\n", size)


def _open_quotes(size: int) -> Iterator[bytes]:
    yield from _filled(b"id,text\n0,first row\n", b'%012d,"' + b"some words " * 90 + b"\n", size)


def _open_quote_in_a_line(size: int) -> Iterator[bytes]:
    yield from _filled(b'id,text\n0,first row\n1,"nobody closes this', b" %012d" + b" some words" * 90, size)


def _columns(size: int) -> Iterator[bytes]:
    names = [b"%x" % number for number in range(size - 1)]
    yield b",".join([*names, b"text"]) + b"\n"
    yield b"1," * (size - 1) + b"one text\n"


def _nested_lists(size: int) -> Iterator[bytes]:
    yield b'{"text": "one row", "a": ' + b"[" * size + b"]" * size + b"}\n"
    yield from _two_rows(size)


def _nested_objects(size: int) -> Iterator[bytes]:
    yield b'{"text": "one row", "a": ' + b'{"a": ' * size + b"1" + b"}" * size + b"}\n"
    yield from _two_rows(size)


def _items(size: int) -> Iterator[bytes]:
    texts = (b'{"text": "item %d of the list"}' % number for number in range(size))
    yield b'{"data": [' + b",".join(texts) + b"]}\n"
    yield b'{"data": [{"text": "one more"}]}\n'


def _numbers(size: int) -> Iterator[bytes]:
    yield b'{"data": [' + b",".join([b"1"] * size) + b"]}\n"
    yield b'{"data": [{"text": "one more"}]}\n'


def _years(size: int) -> Iterator[bytes]:
    for number in range(size):
        when = f"{_YEARS[number % len(_YEARS)]}-01-01 00:00:00"
        yield f'{{"text": "row {number} of all", "created_at": "{when}"}}\n'.encode()


def run(case: Case, size: int, folder: Path) -> Ran:
    """Write the file into this empty folder and run the command on it, with outputs that are files."""
    source, said = folder / case.name, folder / "said"
    with source.open("wb") as stream:
        stream.writelines(case.content(size))
    flags = (source, "-o", folder / f"out{source.suffix}", "--max-unreadable", "1")
    program = (sys.executable, "-m", "twinsieve", "dedup", "--set", "near.method=none")
    with said.open("wb") as errors:
        start = time.perf_counter()
        process = subprocess.Popen([*program, *flags, *case.flags], cwd=_ROOT, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    # Lines of the summary are indented.
    lines = [line for line in said.read_text("utf-8", "replace").splitlines() if line and line[0] != " "]
    return Ran(process.returncode, seconds, usage.ru_maxrss << 10, "; ".join(lines))


def main() -> None:
    """Print machine and table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--gib", type=float, default=0.5, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    table = Table("file", "size", "s", "peak MiB", "exit code, and what was said")
    for case in cases(asked.gib):
        for size in case.sizes:
            with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
                ran = run(case, size, Path(folder))
                shown = ran.said.replace(f"{folder}/", "").removeprefix("twinsieve: ")
            table.add_row(
                case.what,
                f"{size:,}",
                f"{ran.seconds:.1f}",
                f"{ran.peak_bytes / 2**20:.0f}",
                f"{ran.code} {shown}",
            )
    console = Console(width=160, highlight=False)
    console.print(machine_line())
    console.print(table)


if __name__ == "__main__":
    main()
