"""Print why two messages are duplicates or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinsieve.pipeline.basics.printable import beginning, printable
from twinsieve.pipeline.commands.terminal import diff

if TYPE_CHECKING:
    from rich.console import Console

    from twinsieve.pipeline.why.explain import Explanation


_MOST_SHOWN = 2_000
"""Characters of a text that is shown alone; of two texts `parts_of` shows as many."""


def print_texts(console: Console, earlier: str | None, later: str | None) -> None:
    """The texts of two messages as far as they are still there."""
    from rich.text import Text

    for name, text in (("earlier", earlier), ("later", later)):
        if text is not None:
            shown = printable(beginning(text, _MOST_SHOWN))
            line = Text(f"{name} text  ", style="bold") + Text(shown)
            console.print(line, soft_wrap=True)


def print_explanation(console: Console, explanation: Explanation) -> None:
    """Both texts, both bodies and a line for each step of the sieve."""
    from rich.table import Table
    from rich.text import Text

    for name, (left, right) in (("text", explanation.texts), ("body", explanation.bodies)):
        before, after = diff(left, right)
        console.print(Text(f"earlier {name}  ", style="bold") + before, soft_wrap=True)
        console.print(Text(f"later {name}    ", style="bold") + after, soft_wrap=True)
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for step, what in explanation.lines:
        table.add_row(step, printable(what))
    console.print(table)
