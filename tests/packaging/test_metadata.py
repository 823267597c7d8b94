"""What the package says of itself in pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from twinsieve.pipeline.commands.cli import cli


@pytest.fixture
def project(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return loaded


def _minors(project: dict[str, Any]) -> list[int]:
    """Of the Python versions that the classifiers name."""
    lines = "\n".join(project["classifiers"])
    return [
        int(minor)
        for minor in re.findall(r"^Programming Language :: Python :: 3\.(\d+)$", lines, re.MULTILINE)
    ]


def test_the_classifiers_name_the_python_versions_that_may_install_it(project: dict[str, Any]) -> None:
    bounds = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"])
    assert bounds
    assert _minors(project) == list(range(int(bounds[1]), int(bounds[2])))


def test_the_scripts_look_for_every_python_version(root: Path, project: dict[str, Any]) -> None:
    script = (root / "scripts" / "make-venv").read_text("utf-8")
    assert {f"python3.{minor}" for minor in _minors(project)} <= set(re.findall(r"python3\.\d+", script))


def test_the_security_page_names_commands_that_exist_and_invents_no_address(root: Path) -> None:
    page = (root / "SECURITY.md").read_text("utf-8")
    assert not re.search(r"\S@\S|https?:", page)
    commands = re.findall(r"`twinsieve ([a-z]+)", page)
    assert commands
    assert set(commands) <= set(cli.list_commands(click.Context(cli)))
