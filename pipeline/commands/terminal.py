"""Output for people. Characters of messages are escaped, so that they cannot move the cursor, change colours
or hide text."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from twinsieve.pipeline.basics.printable import parts_of, printable
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


def pair_panel(entry: Mapping[str, Any]) -> Group:
    """A dropped message and its leader, with differences in colour. entry: a row of the duplicates file"""
    from rich.console import Group
    from rich.text import Text

    from twinsieve.pipeline.messages.columns import LIKENESS_WORDS

    counted = next((measure for measure in ("distance", "shared") if measure in entry), None)
    if counted is not None:
        degree = f"{entry[counted]} {LIKENESS_WORDS[counted]}"
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
    """Both texts; parts that only the left one has are red, parts that only the right one has are green.

    around: number of characters shown at each end of a long part; None: all are shown
    """
    from rich.text import Text

    before, after = Text(), Text()
    parts = parts_of(left, right)
    for number, part in enumerate(parts):
        if part.same:
            shown = printable(_shortened(part.left, around, first=not number, last=number == len(parts) - 1))
            before.append(shown)
            after.append(shown)
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
