"""Words that the rules know: closed lists from `data/words.yaml`, as tables for kernels.

Each entry is a claim that a reader can check. A phrase is one word of a spaced script, or up to
MAX_PHRASE characters of an unspaced one, as bodies spell it: NFKC, case-folded, without apostrophes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import FNV_OFFSET, FNV_PRIME, GOLDEN
from twinsieve.stages.kernel import kernel

MAX_PHRASE = 8
"""Characters of an unspaced script that one phrase can have."""

UNSPACED, DIGIT, NUMBER_MARK = 1, 2, 4
"""Bits of a character's class. A NUMBER_MARK is a sign, a currency or a separator."""
LIGHT, NUMERAL, NEGATES, EXCLUDES, CORRECTS = 8, 16, 32, 64, 128
"""Bits of a phrase's roles. A phrase with EXCLUDES has senses; NUMERAL is a number in words.

They are bits of a character's class, too. LIGHT and NUMERAL (a Chinese numeral) describe the character
itself; the others say that a phrase with this role begins with the character.
"""
LENGTHS_SHIFT = 8
"""From this bit on, of a character's class: bit k - 1 for a phrase of k characters that begins with it."""
IDIOM = 256
"""A phrase that contains a negation and is not one."""

CALENDAR_KINDS = 3
"""Kinds of senses below this are weekdays, months and days; the others are pairs of opposites."""

_TOP = 1 << 63
_MASK = (1 << 64) - 1


class Phrases(NamedTuple):
    """The lists. One row for each phrase, found by `find`; -1 where a column does not concern it.

    classes: uint16[SPECIAL_PLANES], what each character is, and what phrases begin with it: the bits below
    worth: int64[SPECIAL_PLANES], value of a decimal digit or a Chinese numeral
    cells: int64[2**k], row + 1 or 0; keys: uint64[n], `hash_of` the phrase
    roles: uint16[n], what the phrase is: bits from LIGHT to IDIOM; number: int64[n], its value
    senses: int64[], sense_starts: int64[n + 1]: what it excludes. Two phrases whose senses are of one kind
        (sense >> 8) and differ are opposites, or other days
    """

    classes: NDArray[np.uint16]
    worth: NDArray[np.int64]
    cells: NDArray[np.int64]
    keys: NDArray[np.uint64]
    roles: NDArray[np.uint16]
    number: NDArray[np.int64]
    senses: NDArray[np.int64]
    sense_starts: NDArray[np.int64]


@kernel(callee=True)
def hash_of(chars: NDArray[np.uint32], first: int, end: int) -> np.uint64:
    """Hash of chars[first:end]; its highest bit is set, which no code point has."""
    value = FNV_OFFSET
    for k in range(first, end):
        value = (value ^ np.uint64(chars[k])) * FNV_PRIME
    return (value ^ (value >> np.uint64(29))) | np.uint64(1 << 63)


def key_of(phrase: str) -> int:
    """`hash_of` a phrase, without a kernel.

    >>> f"{key_of('not'):x}"
    'a15ad6182f582f83'
    """
    value = int(FNV_OFFSET)
    for char in phrase:
        value = (value ^ ord(char)) * int(FNV_PRIME) & _MASK
    return (value ^ value >> 29) | _TOP


@kernel(callee=True)
def find(phrases: Phrases, key: np.uint64) -> int:
    """Row of the phrase with this hash, -1 for none."""
    mask = len(phrases.cells) - 1
    cell = np.int64((key * GOLDEN) >> np.uint64(32)) & mask
    while phrases.cells[cell] != 0:
        row = phrases.cells[cell] - 1
        if phrases.keys[row] == key:
            return row
        cell = (cell + 1) & mask
    return np.int64(-1)
