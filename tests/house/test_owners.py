"""State that counts is changed in one file, so that whoever reads that file knows every way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from twinsieve.pipeline.worker.session import Session

_MUTATORS = {"append", "appendleft", "extend", "pop", "popleft", "clear", "go"}


def _changed(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Attributes of anything but `self` that are assigned, or that a call changes in place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            changed = node
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _MUTATORS
            and isinstance(node.func.value, ast.Attribute)
        ):
            changed = node.func.value
        else:
            continue
        if not (isinstance(changed.value, ast.Name) and changed.value.id == "self"):
            yield changed.attr, node.lineno


@pytest.mark.parametrize(
    ("owner", "state"),
    [
        ("worker/session.py", {field.name for field in fields(Session)}),
        ("index/state.py", {"at"}),
        ("index/follower.py", {"decisions_at", "gaps", "since_ms"}),
    ],
)
def test_no_other_file_changes_what_one_file_owns(root: Path, owner: str, state: set[str]) -> None:
    own = root / "pipeline" / owner
    found = [
        f"{path.name}:{line}: {name}"
        for path in sorted(own.parent.glob("*.py"))
        if path != own
        for name, line in _changed(ast.parse(path.read_text("utf-8")))
        if name in state
    ]
    assert found == []
