"""Two texts side by side, with what differs in colour."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from rich.console import Group
from rich.text import Text

from pipeline.commands.terminal import printable

_LONGEST = 2_000
"""Characters of a text that are compared and shown; difflib needs time with the square of the length."""


def pair_panel(entry: Mapping[str, Any]) -> Group:
    """A dropped message above its leader; `entry` as in the duplicates file."""
    if "distance" in entry:
        degree = f"{entry['distance']} bits apart"
    else:
        degree = f"{entry['similarity']:.2%} alike"
    named = f"#{entry['position']} ({entry['id']})"
    leader = f"#{entry['duplicate_of']} ({entry['duplicate_of_id']})"
    flags = f", {', '.join(entry['flags'])}" if entry.get("flags") else ""
    head = Text(printable(f"{entry['stage']}: {named} repeats {leader}, {degree}{flags}"), style="bold")
    kept, dropped = diff(entry["leader_text"], entry["text"])
    return Group(head, Text("  kept     ") + kept, Text("  dropped  ") + dropped, Text(""))


def diff(left: str, right: str) -> tuple[Text, Text]:
    """Both texts, what only one of them has in red (left) and green (right)."""
    left, right = left[:_LONGEST], right[:_LONGEST]
    before, after = Text(), Text()
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        before.append(printable(left[a:b]), style="" if kind == "equal" else "bold red")
        after.append(printable(right[c:d]), style="" if kind == "equal" else "bold green")
    return before, after
