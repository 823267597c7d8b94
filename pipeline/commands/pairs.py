"""Two texts side by side, with what differs in colour."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from rich.console import Group
from rich.text import Text

from twinsieve.pipeline.commands.terminal import printable

_LONGEST = 2_000
"""Characters of a text that are compared and shown; difflib needs time with the square of the length."""


def pair_panel(entry: Mapping[str, Any]) -> Group:
    """A dropped message above its leader; `entry` as in the duplicates file."""
    if "distance" in entry:
        degree = f"{entry['distance']} bits apart"
    elif entry["stage"] == "exact":
        degree = "equal but for what the profile drops"
    else:
        degree = f"{entry['similarity']:.2%} alike"
    named = f"#{entry['position']} ({entry['id']})"
    leader = f"#{entry['duplicate_of']} ({entry['duplicate_of_id']})"
    flags = f", {', '.join(entry['flags'])}" if entry.get("flags") else ""
    head = Text(printable(f"{entry['stage']}: {named} repeats {leader}, {degree}{flags}"), style="bold")
    kept, dropped = diff(entry["leader_text"], entry["text"], around=16)
    return Group(head, Text("  kept     ") + kept, Text("  dropped  ") + dropped, Text(""))


def diff(left: str, right: str, *, around: int | None = None) -> tuple[Text, Text]:
    """Both texts, what only one of them has in red (left) and green (right).

    around: of long equal parts, show so many characters next to a difference; None: all
    """
    left, right = left[:_LONGEST], right[:_LONGEST]
    before, after = Text(), Text()
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            shown = printable(_shortened(left[a:b], around, first=not before, last=b == len(left)))
            before.append(shown)
            after.append(shown)
        else:
            before.append(printable(_shortened(left[a:b], around)), style="bold red")
            after.append(printable(_shortened(right[c:d], around)), style="bold green")
    return before, after


def _shortened(part: str, around: int | None, *, first: bool = False, last: bool = False) -> str:
    if around is None or len(part) <= 3 * around:
        return part
    head = "" if first else part[:around]
    tail = "" if last else part[-around:]
    return f"{head}…{tail}"
