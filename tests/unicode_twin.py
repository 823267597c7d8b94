"""What Python says of characters, under the Unicode version that is frozen in the package.

`unicodedata2` is Python's own module with that version's tables; the rest follows from it as in CPython.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import unicodedata2

from scripts.unicode_tables import folded

WITH_CHARACTERS = (*range(0x40000), *range(0xE0000, 0xF0000))
"""Code points of the planes that hold more than unassigned and private ones."""

category = unicodedata2.category
combining = unicodedata2.combining
normalize = unicodedata2.normalize


@cache
def is_alnum(char: str) -> bool:
    return category(char)[0] == "L" or unicodedata2.numeric(char, None) is not None


@cache
def is_decimal(char: str) -> bool:
    return unicodedata2.decimal(char, None) is not None


def is_space(char: str) -> bool:
    return category(char) == "Zs" or unicodedata2.bidirectional(char) in ("WS", "B", "S")


@cache
def casefold(char: str) -> str:
    """Full case folding of one character."""
    return folded(char)


def class_of(belongs: Callable[[str], bool]) -> str:
    """The inside of a character class of `re`: ranges of all that belong."""
    ranges: list[list[int]] = []
    for code in WITH_CHARACTERS:
        if belongs(chr(code)):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


WORD = class_of(is_alnum) + "_"
r"""Stands for `\w`, which follows the interpreter's own version."""
DIGIT = class_of(is_decimal)
r"""Stands for `\d`."""
CURRENCY = class_of(lambda char: category(char) == "Sc")
