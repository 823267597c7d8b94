"""Regular expressions of the sources: what every Python matches alike, and what does not try again and again.

Possessive quantifiers and atomic groups came with Python 3.11 and match wrongly around a group before 3.11.5.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

_SOURCES = ("stages", "pipeline", "twinsieve/api", "scripts", "bench", "tests")
_CALLS = frozenset({"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"})
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_BROKEN = (codes.POSSESSIVE_REPEAT, codes.ATOMIC_GROUP)


def _inner(operation: Any, argument: Any) -> list[Any]:
    """The patterns inside of one operation."""
    if operation in _REPEATS:
        return [argument[2]]
    if operation is codes.SUBPATTERN:
        return [argument[-1]]
    if operation is codes.ATOMIC_GROUP:
        return [argument]
    if operation in (codes.ASSERT, codes.ASSERT_NOT):
        return [argument[1]]
    if operation is codes.BRANCH:
        return list(argument[1])
    if operation is codes.GROUPREF_EXISTS:
        return [one for one in argument[1:] if one is not None]
    return []


def _operations(pattern: Any, inside: bool = False) -> Iterator[tuple[Any, bool]]:
    """Every operation, and whether it is an endless repeat inside of another one."""
    for operation, argument in pattern:
        endless = operation in _REPEATS and argument[1] is codes.MAXREPEAT
        yield operation, endless and inside
        for inner in _inner(operation, argument):
            yield from _operations(inner, inside or endless)


def _parsed(text: str | bytes) -> Any:
    """The pattern that a text is, None if it is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return parser.parse(text)
        except (re.error, RecursionError, OverflowError):
            return None


def _texts(tree: ast.AST) -> Iterator[tuple[int, str | bytes]]:
    """What stands in an operand of a call that takes a pattern, or in a text handed on to one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS:
            for part in [inner for operand in node.args[:1] for inner in ast.walk(operand)]:
                if isinstance(part, ast.Constant) and isinstance(part.value, str | bytes):
                    yield part.lineno, part.value


def _is_broken(text: str | bytes) -> bool:
    """Whether some Python matches it wrongly."""
    return any(operation in _BROKEN for operation, _ in _operations(_parsed(text) or []))


def _may_explode(text: str | bytes) -> bool:
    """Whether it repeats a repeat without end, so that what does not match is tried in very many ways."""
    return any(twice for _, twice in _operations(_parsed(text) or []))


@pytest.fixture(scope="module")
def patterns(root: Path) -> list[tuple[str, str | bytes]]:
    """Every pattern of the sources with its place."""
    paths = [path for folder in _SOURCES for path in sorted((root / folder).rglob("*.py"))]
    return [
        (f"{path.relative_to(root)}:{line}", text)
        for path in paths
        if path != Path(__file__)
        for line, text in _texts(ast.parse(path.read_text("utf-8")))
    ]


@pytest.mark.parametrize(
    ("text", "broken", "explodes"),
    [
        ("(?:a|b)?+", True, False),
        (b"x(?>ab)c", True, False),
        ("(?:a|(?:b*c)+)+", False, True),
        ("(?:ab+){0,9}", False, False),
    ],
)
def test_a_pattern_is_told_by_what_it_repeats(text: str | bytes, broken: bool, explodes: bool) -> None:
    assert (_is_broken(text), _may_explode(text)) == (broken, explodes)


def test_no_source_has_a_pattern_that_some_python_matches_wrongly(
    patterns: list[tuple[str, str | bytes]],
) -> None:
    assert [place for place, text in patterns if _is_broken(text)] == []


def test_the_program_has_no_pattern_that_may_explode(patterns: list[tuple[str, str | bytes]]) -> None:
    of_program = [found for found in patterns if found[0].startswith(("stages/", "pipeline/", "twinsieve/"))]
    assert [place for place, text in of_program if _may_explode(text)] == []
