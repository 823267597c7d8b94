"""What people see: messages cannot move their cursor, change colours or hide what they are."""

from __future__ import annotations

import sys
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_LINES = frozenset({"\u2028", "\u2029"})
_DIRECTIONS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def printable(text: str) -> str:
    r"""The text with every character escaped that a terminal would obey rather than show.

    >>> print(printable("a\x1b[2Jb\n\u202ec\ud800"))
    a\x1b[2Jb\n\u202ec\ud800
    """
    if text.isprintable():
        return text
    return "".join(_escaped(char) if _acts(char) else char for char in text)


def _acts(char: str) -> bool:
    return char in _LINES or char in _DIRECTIONS or unicodedata.category(char) in ("Cc", "Cs")


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode()


def say_error(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(printable(text) + "\n")


def talk() -> Console:
    """A console on stderr."""
    return _console(stderr=True, width=140)


def report() -> Console:
    """A console on stdout."""
    return _console(stderr=False, width=160)


def _console(*, stderr: bool, width: int) -> Console:
    """`width`: columns where there is no terminal, so that tables in files and pipes are not folded."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Plain(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = width
    return console
