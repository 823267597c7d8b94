"""The tables of states in DESIGN.md are the ways that the program allows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import pytest

from twinsieve.pipeline.index.config import INDEX_WAYS
from twinsieve.pipeline.service.loops import LOOP_WAYS
from twinsieve.pipeline.worker.session import SESSION_WAYS


def _ways(root: Path, name: str) -> set[tuple[str, str]]:
    text = (root / "docs" / "DESIGN.md").read_text("utf-8")
    table = text[text.index(f"| {name}: from |") :].split("\n\n")[0]
    return set(re.findall(r"^\| `(\w+)` \| `(\w+)` \| \S", table, re.MULTILINE))


@pytest.mark.parametrize(
    ("name", "ways"), [("index", INDEX_WAYS), ("session", SESSION_WAYS), ("loop", LOOP_WAYS)]
)
def test_the_table_has_every_way_and_no_other(
    root: Path, name: str, ways: Mapping[StrEnum, set[StrEnum]]
) -> None:
    assert _ways(root, name) == {(start.value, end.value) for start, ends in ways.items() for end in ends}


@pytest.mark.parametrize("ways", [INDEX_WAYS, SESSION_WAYS, LOOP_WAYS])
def test_every_state_is_in_the_table_of_ways(ways: Mapping[StrEnum, set[StrEnum]]) -> None:
    assert set(ways) == set(type(next(iter(ways))))
