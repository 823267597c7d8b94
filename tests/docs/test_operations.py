"""The pages for operators say what the program has: metrics, steps, commands, settings."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from twinsieve.pipeline.cli import cli
from twinsieve.pipeline.index_config import IndexStep
from twinsieve.pipeline.metrics import Metrics
from twinsieve.pipeline.service import SystemClock
from twinsieve.pipeline.settings import Settings
from twinsieve.pipeline.worker import WorkerStep


def _page(root: Path, name: str) -> str:
    return (root / "docs" / name).read_text("utf-8")


def _first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `([a-z_.]+)` \|", text, re.MULTILINE)


def test_every_metric_is_explained_and_no_other(root: Path) -> None:
    known = [
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in Metrics(SystemClock()).registry.collect()
    ]
    assert _first_cells(_page(root, "OPERATIONS.md")) == known


def test_the_crash_table_has_every_step_in_order(root: Path) -> None:
    assert _first_cells(_page(root, "GUARANTEES.md")) == [*WorkerStep, *IndexStep]


def test_the_commands_of_the_page_take_these_options(root: Path) -> None:
    """Each command is parsed with its options; it ends at the settings file, which is not there."""
    blocks = re.findall(r"^```sh\n(.*?)^```", _page(root, "OPERATIONS.md"), re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).splitlines()
    assert len(lines) > 12
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "twinsieve"
        result = CliRunner().invoke(cli, [word.replace("FILE", "/no/such/file.yaml") for word in words])
        said = f"{result.exception} {result.output}"
        assert "/no/such/file.yaml" in said, f"{line}: {said}"


@pytest.mark.parametrize("name", ["OPERATIONS.md", "GUARANTEES.md"])
def test_settings_that_the_pages_name_exist(root: Path, name: str) -> None:
    sections = {
        key for key, field in Settings.model_fields.items() if hasattr(field.annotation, "model_fields")
    }
    named = re.findall(r"`([a-z]+)\.([a-z_]+)[`:]", _page(root, name))
    checked = 0
    for section, key in named:
        if section not in sections:
            continue
        fields = Settings.model_fields[section].annotation.model_fields  # type: ignore[union-attr]
        assert key in {field.alias or its for its, field in fields.items()}, f"{section}.{key}"
        checked += 1
    assert checked > 3


@pytest.mark.parametrize("name", ["OPERATIONS.md", "GUARANTEES.md"])
def test_links_lead_somewhere(root: Path, name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", _page(root, name)):
        assert (root / "docs" / target).exists(), target
