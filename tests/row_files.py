"""Files of rows that tests hand to commands, and rows that commands wrote."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet


def write_rows(path: Path, rows: Iterable[Any]) -> Path:
    """Write JSON lines, or CSV or Parquet where the name ends so; the path again."""
    if path.suffix == ".csv":
        posts = list(rows)
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(posts[0]), quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(posts)
    elif path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(list(rows)), path, row_group_size=400)
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def read_lines(path: Path) -> list[Any]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]
