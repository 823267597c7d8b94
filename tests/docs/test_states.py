"""The tables of states in DESIGN.md are the ways that the program allows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import pytest

from tests.memory.broker import ManualClock
from twinsieve.pipeline.index.config import INDEX_WAYS
from twinsieve.pipeline.service.loop import LOOP_WAYS, LoopPhase
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.worker.session import SESSION_WAYS

_METRIC = "twinsieve_role_phase"


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


def test_the_metric_of_a_loop_knows_every_state() -> None:
    clock = ManualClock()
    metrics = Metrics(clock)
    for phase in LoopPhase:
        metrics.role.enter(phase, "worker")
        found = {
            one: metrics.registry.get_sample_value(_METRIC, {"role": "worker", "phase": one})
            for one in LoopPhase
        }
        assert found == {one: float(one is phase) for one in LoopPhase}


def test_no_series_repeats_a_name_as_label_or_says_when_it_was_made() -> None:
    metrics = Metrics(ManualClock())
    metrics.messages.labels("unique").inc()
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    assert [one for one in samples if one.name in one.labels or one.name.endswith("_created")] == []
