"""Texts of strangers, made fit to be shown: without characters that act."""

from __future__ import annotations

import unicodedata

_LINES = frozenset({"\u2028", "\u2029"})
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


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
