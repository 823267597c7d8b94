"""Seconds that `dedup` takes for two rows of 1, 2 and 4 MiB that strangers made to hurt.

    python -m bench.hostile_texts

Each row repeats one unit: brackets, points, digits, dashes, stretched letters, negations, laughter. Twice the
bytes should take about twice the time. Start-up is not counted; each figure is the least of three runs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

from bench.command import stats_of
from bench.machine import machine_line

UNITS = {
    "brackets": "「」[]()【】",
    "points": "....。。…",
    "digits": "1234567890",
    "spaced digits": "1 2 3 4 ",
    "dashes": "-–—−",
    "stretched letters": "soooooooo",
    "letters and digits": "a1b2-3.4%",
    "laughter": "233 哈 555 ",
    "negations": "not no nie なくない ",
    "parts that deny": "못했다않",
    "kana": "とてもカタカナ",
    "Thai": "ไม่มีค่ะ",
}
_BYTES = (1 << 20, 1 << 21, (1 << 22) - 1024)
"""The last one is the greatest row that `input.max_bytes` lets in, less what is around the text."""
_RUNS = 3


def main() -> None:
    """Print machine and table."""
    table = Table("unit", *(f"{size / (1 << 20):.0f} MiB" for size in _BYTES))
    with tempfile.TemporaryDirectory() as folder:
        for name, unit in UNITS.items():
            table.add_row(name, *(f"{_seconds(unit, size, Path(folder)):.2f} s" for size in _BYTES))
    console = Console(width=100, highlight=False)
    console.print(machine_line())
    console.print(table)


def _seconds(unit: str, size: int, folder: Path) -> float:
    """Of a run over two rows that differ at their ends."""
    body = unit * (size // len(unit.encode()))
    posts = folder / "posts.jsonl"
    posts.write_bytes(b"\n".join(orjson.dumps({"text": f"one {body} {end}"}) for end in ("two", "3 4")))
    return min(float(stats_of(posts, folder / "kept.jsonl")["seconds"]) for _ in range(_RUNS))


if __name__ == "__main__":
    main()
