"""Texts of strangers, made fit to be shown: without characters that act, and with what differs marked."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from difflib import SequenceMatcher

_LINES = frozenset({"\u2028", "\u2029"})
_DIRECTIONS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_MAX_COMPARED = 2_000
"""The most characters of a text that are compared and shown; the time of difflib grows with their square."""


def printable(text: str) -> str:
    r"""The text, with an escape for every character that a terminal or page would not show but execute.

    >>> print(printable("a\x1b[2Jb\n\u202ec\ud800"))
    a\x1b[2Jb\n\u202ec\ud800
    """
    if text.isprintable():
        return text
    return "".join(char.encode("unicode_escape").decode() if acts(char) else char for char in text)


def acts(char: str) -> bool:
    """Whether a terminal would execute this character, or break the line at it, instead of showing it."""
    return char in _LINES or char in _DIRECTIONS or unicodedata.category(char) in ("Cc", "Cs")


def beginning(text: str, most: int) -> str:
    """The text, or its first `most` characters and an ellipsis."""
    return text if len(text) <= most else f"{text[:most]}…"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of two texts. same: whether both have it alike; else each has its own, perhaps an empty one."""

    left: str
    right: str
    same: bool


def parts_of(left: str, right: str, most: int = _MAX_COMPARED) -> list[Part]:
    """Both texts as parts that are alike or not, in order. Only the first `most` characters are compared.

    >>> [(part.left, part.right) for part in parts_of("12 dead", "13 dead")]
    [('1', '1'), ('2', '3'), (' dead', ' dead')]
    """
    left, right = left[:most], right[:most]
    # Texts that are alike mostly have the same ends. difflib takes longest where few characters repeat.
    head = _same_from_the_front(left, right)
    tail = _same_from_the_front(left[head:][::-1], right[head:][::-1])
    middle = left[head : len(left) - tail], right[head : len(right) - tail]
    parts = [Part(left[:head], right[:head], True)] if head else []
    blocks = SequenceMatcher(None, *middle, autojunk=False).get_opcodes()
    parts += [Part(middle[0][a:b], middle[1][c:d], kind == "equal") for kind, a, b, c, d in blocks]
    return [*parts, Part(left[-tail:], right[-tail:], True)] if tail else parts


def _same_from_the_front(left: str, right: str) -> int:
    """The number of characters from the first one on that both texts have alike."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(left), len(right)))
