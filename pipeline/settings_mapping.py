"""Settings that a program gives as a mapping: the same keys, values and refusals as in a file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from twinsieve.pipeline.settings_yaml import Finding, Place, Raw, Tree

SOURCE = "settings"
"""What findings name in place of a file."""

_MAX_DEPTH = 20


def tree_of(mapping: Mapping[str, object]) -> Tree:
    """The mapping as a tree. Keys may be nested or dotted; None is `none`, a timedelta is a duration.

    >>> tree_of({"near.similarity": 0.9, "near": {"window": {"age": None}}}).values
    {'near': {'similarity': '0.9', 'window': {'age': 'none'}}}
    """
    tree = Tree()
    _put_all(tree, tree.values, mapping, ())
    return tree


def _put_all(
    tree: Tree, inside: dict[str, Raw], mapping: Mapping[str, object], above: tuple[str, ...]
) -> None:
    for name, value in mapping.items():
        *sections, key = str(name).split(".")
        path = (*above, *sections, key)
        if len(path) > _MAX_DEPTH:
            _find(tree, path, f"is nested deeper than {_MAX_DEPTH} levels")
            continue
        below: Raw = inside
        for section in sections:
            if isinstance(below, dict):
                below = below.setdefault(section, {})
        if not isinstance(below, dict) or (key in below and not isinstance(value, Mapping)):
            _find(tree, path, "is given twice; remove one of the two")
        elif isinstance(value, Mapping):
            under = below.setdefault(key, {})
            if isinstance(under, dict):
                _put_all(tree, under, value, path)
            else:
                _find(tree, path, "is given twice; remove one of the two")
        else:
            below[key] = _raw(value)


def _raw(value: object) -> Raw:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return f"{value // timedelta(milliseconds=1)}ms"
    if isinstance(value, (list, tuple)):
        return [_raw(one) for one in value]
    return str(value)


def _find(tree: Tree, path: tuple[str, ...], message: str) -> None:
    tree.findings.append(Finding(Place(SOURCE), f"{'.'.join(path[:4])} {message}"))
