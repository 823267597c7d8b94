"""A loop around one library: `python -m bench.peers.loop NAME SOURCE OUTPUT` writes the rows that it keeps.

SOURCE: JSON lines with `text`. A set of strings finds the bodies that are equal to an earlier one; the
library (`bench/peers/loops/NAME.py`) looks for similar ones, where the body is not short.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import orjson

from bench.peers.bodies import MIN_LENGTH, body_of

Near = Callable[[str], bool]
"""Whether an earlier body that was kept is similar to this one; if none is, this one is kept."""


def write_kept(source: Path, output: Path, near: Near) -> None:
    """Copy the rows that repeat no earlier one."""
    seen: set[str] = set()
    with source.open("rb") as rows, output.open("wb") as kept:
        for row in rows:
            body = body_of(orjson.loads(row)["text"])
            repeats = body in seen if body else False
            if not repeats and len(body) >= MIN_LENGTH:
                repeats = near(body)
            if not repeats:
                seen.add(body)
                kept.write(row)


def main() -> None:
    """Run the loop that is named."""
    name, source, output = sys.argv[1:]
    module = import_module(f"bench.peers.loops.{name}")
    if hasattr(module, "write_kept"):
        module.write_kept(Path(source), Path(output))
    else:
        write_kept(Path(source), Path(output), module.near())


if __name__ == "__main__":
    main()
