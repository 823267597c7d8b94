"""Texts of strangers, made fit to be shown: without characters that act, and with what differs marked."""

from __future__ import annotations

import unicodedata
from collections import Counter
from difflib import SequenceMatcher
from typing import NamedTuple

_LINES = frozenset({"\u2028", "\u2029"})
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_MAX_COMPARED = 2_000
"""The most characters of a text that are shown beside another."""

_COMPARED = (2_000, 1_600, 1_200, 1_000, 800, 600, 400, 200)
_MAX_EQUAL_LETTERS = 50_000
"""The most pairs of equal letters, one of each text, that are compared. Texts of two letters alone have
millions, and take difflib minutes."""


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


class Part(NamedTuple):
    """A part of two texts. same: whether both have it alike; else each has its own, perhaps an empty one."""

    left: str
    right: str
    same: bool


def parts_of(left: str, right: str, most: int = _MAX_COMPARED) -> list[Part]:
    """The first `most` characters of both texts as parts that are alike or not, in order.

    The common beginning and end are always found. Between them only a limited number of characters is
    compared, so that texts made to be slow cost no more than others; the rest is one part that is not alike.

    >>> [(part.left, part.right) for part in parts_of("12 dead", "13 dead")]
    [('1', '1'), ('2', '3'), (' dead', ' dead')]
    """
    left, right = left[:most], right[:most]
    begin, end = alike_at_ends(left, right)
    middle_left, middle_right = left[begin : len(left) - end], right[begin : len(right) - end]
    compared = _comparable(middle_left, middle_right)
    near_left, near_right = middle_left[:compared], middle_right[:compared]
    blocks = SequenceMatcher(None, near_left, near_right, autojunk=False).get_opcodes()
    parts = [Part(near_left[a:b], near_right[c:d], kind == "equal") for kind, a, b, c, d in blocks]
    return [
        *([Part(left[:begin], left[:begin], same=True)] if begin else []),
        *_joined([*parts, Part(middle_left[compared:], middle_right[compared:], same=False)]),
        *([Part(left[len(left) - end :], left[len(left) - end :], same=True)] if end else []),
    ]


def alike_at_ends(left: str, right: str) -> tuple[int, int]:
    """Numbers of characters with which both texts begin and end; the two parts do not overlap.

    >>> alike_at_ends("12 dead", "13 dead"), alike_at_ends("aaa", "aaaa")
    ((1, 5), (3, 0))
    """
    begin = alike_at_start(left, right)
    return begin, alike_at_start(left[begin:][::-1], right[begin:][::-1])


def alike_at_start(left: str, right: str) -> int:
    """Number of characters with which both texts begin, found in halves: slices are compared as memory.

    >>> alike_at_start("12 dead", "13 dead")
    1
    """
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _comparable(left: str, right: str) -> int:
    """How many characters of both may be compared: difflib looks at each two equal letters, for each part."""
    for count in _COMPARED:
        letters, others = Counter(left[:count]), Counter(right[:count])
        if sum(number * others[letter] for letter, number in letters.items()) <= _MAX_EQUAL_LETTERS:
            return count
    return _COMPARED[-1]


def _joined(parts: list[Part]) -> list[Part]:
    """The parts without an empty one at the end, which joins a part before it that is not alike either."""
    *before, last = parts
    if before and not before[-1].same:
        last = Part(before[-1].left + last.left, before.pop().right + last.right, same=False)
    return [*before, last] if last.left or last.right else before
