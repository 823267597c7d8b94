"""The schema of settings as text: comments of the examples in config/, and the table of all keys."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from twinsieve.pipeline.settings.load import tree_of_file
from twinsieve.pipeline.settings.model import AUTO, PROFILES
from twinsieve.pipeline.settings.schema import (
    declared,
    is_expert,
    literals,
    schema,
    written_as,
)
from twinsieve.pipeline.settings.show import help_line, written_defaults
from twinsieve.pipeline.settings.yaml_tree import read_flow

_WIDTH, _COMMENT_AT = 140, 34
_OF_PROFILES = [
    key
    for key in schema()
    if key.startswith("near.") and key.split(".")[1] in {name for own in PROFILES.values() for name in own}
]
_WHOLE_NUMBERS = 10**9
"""A bound beyond this is there for safety, and no page names it."""


def example(path: Path, *, complete: bool) -> str:
    """The file with its first comment and its values, and every other comment as the schema has it.

    complete: with every key that is neither a secret nor for experts; what the file lacks gets its default
    A key that the file does not set stays a comment, if profiles have other values for it: its default would
    replace that of the profile.
    """
    text = path.read_text("utf-8")
    head, _, _ = text.partition("\n\n")
    written = _flat(tree_of_file(path).values)
    defaults = written_defaults()
    off = {
        key
        for key in _OF_PROFILES
        if key not in written and (complete or f"# {key.rpartition('.')[2]}: " in text)
    }
    keys = [
        key
        for key in defaults
        if (not is_expert(declared()[key]) if complete else key in written or key in off)
    ]
    lines: list[str] = []
    before: list[str] = []
    for key in keys:
        *above, name = key.split(".")
        if above[:1] != before[:1] or not lines:
            lines.append("")
        lines += [
            f"{'  ' * depth}{_off(above[: depth + 1], keys, off)}{section}:"
            for depth, section in enumerate(above)
            if above[: depth + 1] != before[: depth + 1]
        ]
        before = above
        value = _flow(written[key]) if key in written else defaults[key]
        hash_ = "# " if key in off else ""
        lines += _commented(f"{'  ' * len(above)}{hash_}{name}: {value}", help_line(key))
    return f"{head}\n" + "\n".join(lines) + "\n"


def _off(section: list[str], keys: list[str], off: set[str]) -> str:
    """The mark of a comment, if every key of the section is one."""
    below = [key for key in keys if key.startswith(f"{'.'.join(section)}.")]
    return "# " if off.issuperset(below) else ""


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        key = f"{above}{name}"
        if schema()[key] == "section":
            flat |= _flat(value, f"{key}.")
        else:
            flat[key] = value
    return flat


def _flow(value: Any) -> str:
    """A value of a tree on one line of YAML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_flow(each)}' for name, each in value.items())}}}"
    text = str(value)
    return (
        text if read_flow(f"[{text}]", "").values["value"] == [text] else "'" + text.replace("'", "''") + "'"
    )


def _commented(line: str, comment: str) -> list[str]:
    beside = f"{line:{_COMMENT_AT - 2}}  # {comment}"
    if len(beside) <= _WIDTH:
        return [beside]
    indent = line[: len(line) - len(line.lstrip())] + "# "
    return [*textwrap.wrap(comment, _WIDTH - 20, initial_indent=indent, subsequent_indent=indent), line]


def all_keys() -> str:
    """A table of every key that takes a value; those for experts in a table of their own."""
    usual = [key for key, info in declared().items() if not is_expert(info)]
    expert = [key for key, info in declared().items() if is_expert(info)]
    heading = "### For experts\nFew people need these; no example sets them.\n"
    return f"{_table(usual)}\n{heading}\n{_table(expert)}"


def _table(keys: list[str]) -> str:
    defaults = written_defaults()
    rows = ["| key | takes | default | what it is |", "|---|---|---|---|"]
    for key in keys:
        if schema()[key] == "section":
            continue
        default = "auto" if key in AUTO else defaults.get(key, "none; never written in a file")
        about = declared()[key].description or ""
        if key in AUTO:
            about += f". auto: {AUTO[key]}"
        cells = (f"`{key}`", _takes(key), default, about)
        rows.append("| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _takes(key: str) -> str:
    info, kind = declared()[key], schema()[key]
    if choices := literals(key):
        return f"{'a list of ' if kind == 'list' else ''}{', '.join(choices)}"
    if written := written_as(info):
        return written.takes
    if kind != "value":
        return f"a {kind}"
    low, high = _bounds(info)
    if low is None:
        return "a text"
    return f"from {low}" if high is None else f"{low} to {high}"


def _bounds(info: FieldInfo) -> tuple[Any, Any]:
    low = next(
        (each.ge if isinstance(each, Ge) else each.gt for each in info.metadata if isinstance(each, Ge | Gt)),
        None,
    )
    high = next(
        (each.le if isinstance(each, Le) else each.lt for each in info.metadata if isinstance(each, Le | Lt)),
        None,
    )
    return low, high if high is not None and high <= _WHOLE_NUMBERS else None
