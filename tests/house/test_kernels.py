"""A kernel is small enough to be read at once, or says why it is not."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

_MAX_LINES = 60

_LONGER = {
    "stages/text/keys.py _write": "one pass over a row; every rule reads and sets what the rules before it left",
}
"""Kernels of more lines, and why each is one piece."""

_NO_CODE = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


def _code_lines(source: str) -> set[int]:
    """Lines that hold more than blanks and comments."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        line
        for token in tokens
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }


def _is_kernel(function: ast.FunctionDef) -> bool:
    names = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    return any(isinstance(name, ast.Name) and name.id == "kernel" for name in names)


def _sizes(source: str) -> Iterator[tuple[str, int]]:
    """Each kernel and its lines of code; a docstring is none."""
    code = _code_lines(source)
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and _is_kernel(function):
            first = function.body[0] if ast.get_docstring(function) is None else function.body[1]
            own = range(function.lineno, function.body[0].lineno)
            body = range(first.lineno, (function.end_lineno or 0) + 1)
            yield function.name, len(code & {*own, *body})


def test_no_kernel_is_long_without_a_reason(root: Path) -> None:
    sizes = {
        f"{path.relative_to(root)} {name}": lines
        for path in (root / "stages").rglob("*.py")
        for name, lines in _sizes(path.read_text("utf-8"))
    }
    assert len(sizes) > 90
    assert {name for name, lines in sizes.items() if lines > _MAX_LINES} == _LONGER.keys()


def test_lines_of_a_kernel_are_its_code() -> None:
    source = '@kernel(callee=True)\ndef f(\n    x: int,\n) -> int:\n    """One.\n\n    Two."""\n    # why\n\n    return x\n'
    assert list(_sizes(source)) == [("f", 4)]
