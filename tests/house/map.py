"""The map of the program: folders with code, their imports, and the levels that follow.

    python -m tests.house.map

An arrow is an import of a module of one folder by a module of another, wherever it stands: at the top, inside a
function, or for type checkers alone. A folder stands one level above the highest one that it imports from.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = {"stages": "twinsieve.stages", "pipeline": "twinsieve.pipeline", "twinsieve": "twinsieve"}


def modules() -> dict[str, Path]:
    """Every module of the program by the name under which it is imported."""
    found = {}
    for top, name in _PACKAGES.items():
        for path in _sources(ROOT / top):
            parts = path.relative_to(ROOT / top).with_suffix("").parts
            found[".".join((name, *parts)).removesuffix(".__init__")] = path
    return found


def _sources(folder: Path) -> Iterator[Path]:
    """Links are left out: `twinsieve/` links to the other two."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from _sources(path)
        elif path.suffix == ".py":
            yield path


def folder_of(path: Path) -> str:
    """Where a source lies, below the checkout."""
    return path.parent.relative_to(ROOT).as_posix()


@cache
def sizes() -> dict[str, int]:
    """Modules of each folder with code, `__init__.py` counted; a docstring alone is no code."""
    found: dict[str, int] = defaultdict(int)
    coded = set()
    for path in modules().values():
        found[folder_of(path)] += 1
        if len(ast.parse(path.read_text("utf-8")).body) > 1:
            coded.add(folder_of(path))
    return {folder: count for folder, count in found.items() if folder in coded}


@cache
def arrows() -> dict[tuple[str, str], list[str]]:
    """(folder, folder it imports from) -> the imports as `module -> module`."""
    known = modules()
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, path in known.items():
        for imported in _imports(path):
            target = imported if imported in known else imported.rpartition(".")[0]
            if target in known and folder_of(known[target]) != folder_of(path):
                found[folder_of(path), folder_of(known[target])].append(f"{name} -> {target}")
    return dict(found)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def levels() -> dict[str, int]:
    """Level of each folder, 0 at the ground. raises: ValueError with a circle of folders"""
    below = {folder: {low for high, low in arrows() if high == folder} for folder in sizes()}
    found: dict[str, int] = {}

    def level(folder: str, way: tuple[str, ...]) -> int:
        if folder in way:
            raise ValueError(" -> ".join((*way[way.index(folder) :], folder)))
        if folder not in found:
            found[folder] = max((level(low, (*way, folder)) + 1 for low in below[folder]), default=0)
        return found[folder]

    for folder in sizes():
        level(folder, ())
    return found


def main() -> None:
    """Print the map, the highest level first."""
    placed = levels()
    for height in sorted(set(placed.values()), reverse=True):
        print(f"level {height}")
        for folder in sorted(one for one, at in placed.items() if at == height):
            print(f"  {folder}: {sizes()[folder]} modules")
            for (high, low), imports in sorted(arrows().items()):
                if high == folder:
                    print(f"      -> {low} ({len(imports)})")
    print(f"{len(sizes())} folders, {len(arrows())} arrows, {len(set(placed.values()))} levels")


if __name__ == "__main__":
    sys.exit(main())
