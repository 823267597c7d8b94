"""The map in DESIGN.md leaves no part of the program out, and names nothing that is not there."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

_OWN = {"__init__.py", "data", "__pycache__"}


def _named(root: Path, package: str) -> list[str]:
    """Patterns of the first cells of the map, below a package; those without a folder continue the one before."""
    found = []
    text = (root / "docs" / "DESIGN.md").read_text("utf-8")
    for cell in re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE):
        names = re.findall(r"`([^`]+)`", cell)
        if names[0].startswith(f"{package}/"):
            found += [name.removeprefix(f"{package}/").rstrip("/") for name in names]
    return found


@pytest.mark.parametrize("package", ["stages", "pipeline"])
def test_the_map_names_every_part_and_no_other(root: Path, package: str) -> None:
    parts = {path.name for path in (root / package).iterdir() if path.suffix in (".py", "")} - _OWN
    # The seam's row says in its text who stands behind it.
    named = [*_named(root, package), *(["memory*.py", "kafka"] if package == "pipeline" else [])]
    assert {part for part in parts if not any(fnmatch(part, pattern) for pattern in named)} == set()
    assert {pattern for pattern in named if not any(fnmatch(part, pattern) for part in parts)} == set()
