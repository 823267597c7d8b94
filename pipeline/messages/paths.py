"""Converts field names in settings to paths and back: `user.name`, `entities[0].text`, `data[*].text`."""

from __future__ import annotations

import json
import re
from typing import Any

from twinsieve.stages.errors import UsageError

Path = tuple[str | int, ...]
"""Place of a value in a document: member names and list indices, the outermost first."""


class _Each(int):
    """An index of a list that stands for each of its items."""


EACH = _Each(0)
"""`[*]` in a path. Whoever reads such a path is given documents whose list has one item, the first one."""

MISSING = object()
"""Returned for a field that does not exist; a field with the value null is None."""

_BRACKET = re.compile(r"""\[(?:([0-9]{1,9}|\*)|"((?:[^"\\]|\\.)*)"|'([^']*)')\]""", re.DOTALL)
_ESCAPED = re.compile(r"\\([.\\\[\]])")
_BARE = re.compile(r"(?:\\[.\\\[\]]|[^.\[\]])+")
"""A name without quotes. A backslash escapes only a dot, a backslash or a bracket; before any other character
it is part of the name."""
_PLAIN = re.compile(r"[^.\[\]\\]+")


def path_of(name: str) -> Path:
    r"""The path that a name stands for: `user.name` is `name` in `user`, `tags[0]` the first item of `tags`.

    If a member's name contains a dot or a bracket, it is written as `["a.b"]`, or as `a\.b`.
    raises: UsageError with the column of the mistake

    >>> path_of("user.name"), path_of("entities[0].text"), path_of(r"a\.b"), path_of('user["a.b"]')
    (('user', 'name'), ('entities', 0, 'text'), ('a.b',), ('user', 'a.b'))
    """
    parts: list[str | int] = []
    column = 0
    while True:
        if _BRACKET.match(name, column) is None:
            part, column = _bare(name, column)
            parts.append(part)
        while (bracket := _BRACKET.match(name, column)) is not None:
            parts.append(_inside(name, bracket))
            column = bracket.end()
        if column == len(name):
            break
        if name[column] != ".":
            brackets = 'in brackets stands an index, as [0], a star for each, or a quoted name, as ["a.b"]'
            raise _refused(name, column, brackets)
        column += 1
    if isinstance(parts[0], int):
        raise _refused(name, 0, "begin with a name: a message is an object")
    if sum(part is EACH for part in parts) > 1:
        raise _refused(name, name.rindex("[*]"), "[*] stands once in a name; split the rows before")
    return tuple(parts)


def name_of(path: Path) -> str:
    """The name of a path, in the form that `path_of` reads.

    >>> name_of(("user", "a.b", 0, "text"))
    'user["a.b"][0].text'
    """
    name = ""
    for part in path:
        if part is EACH:
            name += "[*]"
        elif isinstance(part, int):
            name += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            name += f".{part}" if name else part
        else:
            name += f"[{json.dumps(part, ensure_ascii=False)}]"
    return name


def list_of(path: Path) -> Path | None:
    """The path of the list of which a path names each item; None if it names none.

    >>> list_of(path_of("data[*].text")), list_of(path_of("data[0].text"))
    (('data',), None)
    """
    return next((path[:place] for place, part in enumerate(path) if part is EACH), None)


def field_at(document: Any, path: Path) -> Any:
    """The value at a path of the document, or MISSING."""
    for part in path:
        if isinstance(part, int):
            if not isinstance(document, list) or part >= len(document):
                return MISSING
        elif not isinstance(document, dict) or part not in document:
            return MISSING
        document = document[part]
    return document


def _bare(name: str, column: int) -> tuple[str, int]:
    """The unquoted name that begins at this column, without escaping backslashes, and the column after it."""
    written = _BARE.match(name, column)
    if written is None:
        raise _refused(name, column, "a name is missing")
    return _ESCAPED.sub(r"\1", written[0]), written.end()


def _inside(name: str, bracket: re.Match[str]) -> str | int:
    index, double, single = bracket.groups()
    if index is not None:
        return EACH if index == "*" else int(index)
    if single is not None:
        return str(single)
    try:
        return str(json.loads(f'"{double}"', strict=False))
    except ValueError as error:
        raise _refused(name, bracket.start(), "the quoted name is not a JSON string") from error


def _refused(name: str, column: int, why: str) -> UsageError:
    return UsageError(f"{name!r}, column {column + 1}: {why}")
