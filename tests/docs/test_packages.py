"""The README's table of packages says who imports each, and leaves no importer out but those that say less."""

from __future__ import annotations

import ast
import re
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
    text = (root / "README.md").read_text("utf-8")
    part = text[text.index("## What it stands on") : text.index("## Settings")]
    rows = re.findall(r"^\| ([a-z0-9-]+) \|[^|]*\|([^|]*)\|", part, re.MULTILINE)
    return {name: re.findall(r"`([^`]+\.py)`", where) for name, where in rows if name != "package"}


def _modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def _importers(root: Path, module: str) -> set[str]:
    return {
        str(path.relative_to(root))
        for folder in ("stages", "pipeline")
        for path in (root / folder).rglob("*.py")
        if any(name.split(".")[0] == module for name in _modules(path))
    }


def test_the_table_has_these_packages(root: Path) -> None:
    assert set(_table(root)) == set(_IMPORTED_AS)


@pytest.mark.parametrize("package", _IMPORTED_AS)
def test_the_files_that_the_table_names_are_those_that_import_the_package(root: Path, package: str) -> None:
    importers = _importers(root, _IMPORTED_AS[package])
    named = set(_table(root)[package])
    if package == "kafka-python":
        # The client is a folder of files; the table names the two that make it and that leave groups.
        assert importers
        assert all(re.match(r"pipeline/kafka/kafka_python/\w+\.py$", name) for name in importers)
        assert named == {"pipeline/kafka/kafka_python/client.py", "pipeline/kafka/kafka_python/admin.py"}
        assert "pipeline/kafka/kafka_python/admin.py" in importers
    else:
        assert importers == named


def test_no_configuration_but_keywords_imports_jieba(root: Path) -> None:
    """It is imported inside functions that only keywords call."""
    tree = ast.parse((root / "stages" / "fingerprint" / "segmenter.py").read_text("utf-8"))
    at_the_top = {
        alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names
    } | {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not any(name and name.startswith("jieba") for name in at_the_top)
