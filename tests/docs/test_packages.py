"""The packages that README and DESIGN name are in real use, where DESIGN says."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

_IMPORTED_AS = {
    "pybloom-live": "pybloom_live",
    "marisa-trie": "marisa_trie",
    "jieba": "jieba",
    "kafka-python": "kafka",
    "mmh3": "mmh3",
    "pyyaml": "yaml",
}


def _table(root: Path) -> dict[str, list[str]]:
    """Package → files that the table names for it."""
    text = (root / "docs" / "DESIGN.md").read_text("utf-8")
    part = text[text.index("## What it stands on") : text.index("## What is not obvious")]
    rows = re.findall(r"^\| ([a-z0-9-]+) \|[^|]*\|([^|]*)\|", part, re.MULTILINE)
    return {name: re.findall(r"`([^`]+\.py)`", where) for name, where in rows if name != "package"}


def _modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("package", _IMPORTED_AS)
def test_the_files_that_the_design_names_for_a_package_import_it(root: Path, package: str) -> None:
    named = _table(root)[package]
    assert named
    for name in named:
        modules = {module.split(".")[0] for module in _modules(root / name)}
        assert _IMPORTED_AS[package] in modules, name


@pytest.mark.parametrize("package", _IMPORTED_AS)
def test_a_package_that_the_readme_names_is_a_dependency(root: Path, package: str) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    assert any(re.match(rf"{package}\b", each) for each in project["project"]["dependencies"])
    assert package in (root / "README.md").read_text("utf-8")


def test_no_configuration_but_keywords_imports_jieba(root: Path) -> None:
    """It is imported inside functions that only keywords call."""
    tree = ast.parse((root / "stages" / "fingerprint" / "segmenter.py").read_text("utf-8"))
    at_the_top = {
        alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names
    } | {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not any(name and name.startswith("jieba") for name in at_the_top)
