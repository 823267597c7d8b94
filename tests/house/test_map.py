"""Imports of the program go one way; the map in DESIGN.md names each folder."""

from __future__ import annotations

import re
from pathlib import Path

from tests.house import map as house


def test_no_import_goes_up() -> None:
    """`levels` raises for a circle, and where there is none every import goes down."""
    placed = house.levels()
    assert [one for one in house.arrows() if placed[one[0]] <= placed[one[1]]] == []


def test_the_ground_imports_nothing_but_the_decorator_of_kernels() -> None:
    ground = ("stages/kernel", "stages", "pipeline/basics")
    assert {low for high, low in house.arrows() if high in ground} == {"stages/kernel"}


def test_the_map_names_every_folder_once(root: Path) -> None:
    text = (root / "docs" / "DESIGN.md").read_text("utf-8")
    _, _, where = text.partition("\n## Where things are\n")
    named = re.findall(r"^\| `([a-z_/]+)/` \|", where.partition("\n## ")[0], re.MULTILINE)
    assert sorted(named) == sorted(house.sizes())
