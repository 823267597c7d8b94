"""Output for people. Characters of messages are escaped, so that they cannot move the cursor, change colours
or hide text."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from twinsieve.pipeline.basics.printable import printable
from twinsieve.stages.errors import without_secrets

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.text import Text


def say_error(text: str) -> None:
    """Print one line on stderr, without secrets."""
    sys.stderr.write(printable(without_secrets(text)) + "\n")


def talk() -> Console:
    """A console on stderr."""
    return _console(stderr=True, width=140)


def report() -> Console:
    """A console on stdout."""
    return _console(stderr=False, width=160)


def _console(*, stderr: bool, width: int) -> Console:
    """A console. width: columns if the output is not a terminal, so that tables in files and pipes are not
    folded"""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    # No markup: a text may contain what looks like markup of rich, as "[10mg|10ml]" or ":warning:".
    console = Plain(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = width
    return console


def examples(*lines: str) -> str:
    """The examples of a command as an epilog for click, one line for each."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


_AROUND = 40
"""Characters that an example shows at each end of a long part that two texts have in common."""


def dropped_panel(entry: Mapping[str, Any]) -> Group:
    """A dropped message and its leader, with differences in colour. entry: a row of the duplicates file"""
    named = f"#{entry['position']} ({entry['id']})"
    leader = f"#{entry['duplicate_of']} ({entry['duplicate_of_id']})"
    degree = "equal but for what the profile drops" if entry["stage"] == "exact" else _degree(entry)
    flags = f", {', '.join(entry['flags'])}" if entry.get("flags") else ""
    head = f"{entry['stage']}: {named} repeats {leader}, {degree}{flags}"
    return _panel(head, ("kept", entry["leader_text"]), ("dropped", entry["text"]))


def apart_panel(entry: Mapping[str, Any]) -> Group:
    """Two similar messages that were both kept, and the reason. entry: a row of --kept-apart"""
    named = f"#{entry['position']} ({entry['id']})"
    other = f"#{entry['apart_from']} ({entry['apart_from_id']})"
    words = f" {entry['apart_from_says']}/{entry['says']}" if entry["says"] is not None else ""
    head = f"kept apart: {named} and {other}, {_degree(entry)}, {entry['reason']}{words}"
    return _panel(head, ("kept", entry["apart_from_text"]), ("kept too", entry["text"]))


def _degree(entry: Mapping[str, Any]) -> str:
    """How alike the two messages of an entry are, in words."""
    from twinsieve.pipeline.messages.verdict_values import LIKENESS_WORDS

    for measure in ("distance", "shared"):
        if measure in entry:
            return f"{entry[measure]} {LIKENESS_WORDS[measure]}"
    return f"{entry['similarity']:.2%} alike"


def _panel(head: str, earlier: tuple[str, str], later: tuple[str, str]) -> Group:
    """A head line, then both texts behind their names, each a (name, text)."""
    from rich.console import Group
    from rich.text import Text

    texts = diff(earlier[1], later[1], around=_AROUND)
    lines = [Text(f"  {name:<9}") + text for (name, _), text in zip((earlier, later), texts, strict=True)]
    return Group(Text(printable(head), style="bold"), *lines, Text(""))


def diff(left: str, right: str, *, around: int | None = None) -> tuple[Text, Text]:
    """Both texts; words that only the left one has are red, words that only the right one has are green.

    around: number of characters shown at each end of a long part; None: all are shown
    """
    from rich.text import Text

    from twinsieve.pipeline.pages.differing import parts_of

    before, after = Text(), Text()
    parts = parts_of(left, right)
    for number, part in enumerate(parts):
        if part.same:
            ends = {"first": not number, "last": number == len(parts) - 1}
            # Both are shortened or none, so that they stay comparable where one has a link more.
            shown = around if around and min(len(part.left), len(part.right)) > 3 * around else None
            before.append(printable(_shortened(part.left, shown, **ends)))
            after.append(printable(_shortened(part.right, shown, **ends)))
        else:
            before.append(printable(_shortened(part.left, around)), style="bold red")
            after.append(printable(_shortened(part.right, around)), style="bold green")
    return before, after


def _shortened(part: str, around: int | None, *, first: bool = False, last: bool = False) -> str:
    if around is None or len(part) <= 3 * around:
        return part
    head = "" if first else part[:around]
    tail = "" if last else part[-around:]
    return f"{head}…{tail}"
