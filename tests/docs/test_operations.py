"""The pages for operators say what the program has: metrics, steps, commands, settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.docs.documents import commands
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.commands.cli import cli
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.index.ledger import GivenUp
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.shards.config import ShardStep
from twinsieve.pipeline.worker.config import WorkerStep
from twinsieve.pipeline.worker.waiting import WaitReason


def _page(root: Path, name: str) -> str:
    return "\n".join(page.read_text("utf-8") for page in sorted((root / "docs").glob(name)))


def _section(root: Path, name: str, title: str) -> str:
    return _page(root, name).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `([a-z_.]+)` \|", text, re.MULTILINE)


def _metrics() -> list[str]:
    """As they are named on the page of a process."""
    return [
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in Metrics(SystemClock()).registry.collect()
        if not family.name.startswith("process_")
    ]


@pytest.mark.parametrize("name", ["METRICS.md", "OPERATIONS.md", "GUARANTEES.md", "runbooks/*.md"])
def test_a_metric_that_a_page_names_exists(root: Path, name: str) -> None:
    named = set(re.findall(r"`(twinsieve_[a-z_]+)", _page(root, name)))
    assert named
    assert named <= set(_metrics())


def test_every_reason_of_a_dead_letter_is_explained_and_no_other(root: Path) -> None:
    section = _section(root, "OPERATIONS.md", "Dead letters")
    assert re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE) == list(DeadLetterReason)


def test_every_reason_of_a_waiting_partition_has_its_row_and_no_other(root: Path) -> None:
    rows = _first_cells(_section(root, "runbooks/half-comes-out.md", "Look"))
    assert sorted(rows) == sorted(WaitReason)


def test_the_crash_table_has_every_step_in_order(root: Path) -> None:
    table = (root / "tests" / "crash" / "README.md").read_text("utf-8")
    assert _first_cells(table) == [*WorkerStep, *IndexStep, *ShardStep, IndexStep.POLLED]


def test_all_that_keeps_a_judged_message_from_coming_out_is_explained(root: Path) -> None:
    assert _first_cells(_section(root, "GUARANTEES.md", "Judged and never out")) == ["reason", *GivenUp]


def test_the_commands_of_the_page_take_these_options(root: Path) -> None:
    """Each command is parsed with its options; it ends at the settings file, which is not there."""
    lines = commands(root / "docs" / "OPERATIONS.md", "twinsieve")
    assert lines
    for _, *words in lines:
        result = CliRunner().invoke(cli, [word.replace("FILE", "/no/such/file.yaml") for word in words])
        shown = f"{result.exception} {result.output}"
        assert "/no/such/file.yaml" in shown, f"{words}: {shown}"
