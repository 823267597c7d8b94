"""A large indented JSON array as rows under this Python: those that `json` reads, and little is held.

    python -m bench.json_array [--mb 100] [--seed 1]

Elements hold escapes, brackets, lists and line breaks of every kind. Exit code 1 if a row differs, or if
more than 32 MiB are held. Elements are written and compared one at a time, so `json` needs no more.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from twinsieve.pipeline.files.formats.json_documents import one_line, split_documents
from twinsieve.pipeline.files.source import InputSource

_ROW_LIMIT = 4 << 20
_HELD_LIMIT_MIB = 32
_PIECES = [
    "今天武汉下雨了，",
    "no umbrella ",
    '"quoted" ',
    "\\",
    "\n",
    "[1, {",
    "}] ",
    "\u2028",
    "tab\t",
    "\ud83d",
]


def elements(megabytes: int, seed: int) -> Iterator[Any]:
    """Elements of about that many bytes together, the same for a seed."""
    random = Random(seed)
    size, number = 0, 0
    while size < megabytes * 1_000_000:
        text = "".join(random.choices(_PIECES, k=random.randrange(60)))
        tags: list[Any] = [random.choice(_PIECES), [], {}, random.random(), [[number]], None]
        element: Any = {"id": number, "text": text, "user": {"name": 'a"b', "tags": tags[: number % 7]}}
        element = (text, number, [element], element)[random.randrange(4)] if number % 50 == 0 else element
        yield element
        size += len(_written(element))
        number += 1


def _written(element: Any) -> bytes:
    # Every other element in ASCII alone, where each letter is an escape.
    ascii_alone = isinstance(element, dict) and element["id"] % 2 == 0
    lines = json.dumps(element, indent=2, ensure_ascii=ascii_alone).replace("\n", "\n  ")
    return lines.encode("utf-8", "surrogatepass" if ascii_alone else "replace")


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "array.json"
        with path.open("wb") as array:
            for number, element in enumerate(elements(options.mb, options.seed)):
                array.write((b",\n  " if number else b"[\n  ") + _written(element))
            array.write(b"\n]\n")
        before, differ, rows, seconds = _peak_mib(), 0, 0, 0.0
        wanted = elements(options.mb, options.seed)
        with InputSource(str(path)) as source:
            batches = split_documents(source.blocks(), _ROW_LIMIT, path.name)
            while True:
                started = perf_counter()
                batch = next(batches, None)
                seconds += perf_counter() - started
                if batch is None:
                    break
                for row in batch.rows:
                    written = _written(next(wanted))
                    same = row is not None and json.loads(row) == json.loads(one_line(row)) == json.loads(
                        written
                    )
                    differ += not same
                    rows += 1
        differ += len(list(wanted))
        held = _peak_mib() - before
        size = path.stat().st_size / 1e6
    print(
        f"Python {platform.python_version()}: {size:.0f} MB, {rows:,} rows, {differ} differ from what json "
        f"reads; {seconds / max(rows, 1) * 1e6:.1f} µs a row, {size / seconds:.0f} MB/s; "
        f"{held:.0f} MiB held at most"
    )
    sys.exit(1 if differ or held > _HELD_LIMIT_MIB else 0)


if __name__ == "__main__":
    main()
