"""Every public name says what it gives, and what it says runs."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Iterator
from pathlib import Path

_Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _public(root: Path, package: str) -> Iterator[tuple[str, _Defined]]:
    """Public functions and classes, and the public methods of public classes that no base there has."""
    for path in sorted((root / package).rglob("*.py")):
        module = ast.parse(path.read_text("utf-8"))
        methods: dict[str, dict[str, ast.FunctionDef]] = {}
        for node in module.body:
            if isinstance(node, _Defined) and not node.name.startswith("_"):
                yield f"{path.relative_to(root)}:{node.lineno}: {node.name}", node
                if isinstance(node, ast.ClassDef):
                    own = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
                    inherited = [methods.get(ast.unparse(base), {}) for base in node.bases]
                    methods[node.name] = dict(ChainMap(own, *inherited))
                    for name, method in own.items():
                        if not name.startswith("_") and not any(name in base for base in inherited):
                            yield f"{path.relative_to(root)}:{method.lineno}: {node.name}.{name}", method


def _is_overload(node: _Defined) -> bool:
    return any("overload" in ast.unparse(one) for one in node.decorator_list)


def test_every_public_name_has_a_docstring(root: Path) -> None:
    """Of the pipeline functions and classes; of the rest their methods too."""
    silent = [
        where
        for package in ("stages", "twinsieve", "pipeline")
        for where, node in _public(root, package)
        if not (package == "pipeline" and "." in where.rpartition(": ")[2])
        and not ast.get_docstring(node)
        and not _is_overload(node)
    ]
    assert not silent, "\n".join(silent)
