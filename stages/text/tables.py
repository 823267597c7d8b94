"""What the kernels know of each code point: class bits, compatibility mapping and case folding.

Built once, on first use, from Python's own Unicode database, in well under 0.15 s. Only code points that the
database treats specially are asked one by one; whole planes without any are filled at once
(a test compares every entry with the database).
"""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.text.scripts import unspaced_table

LETTER = 1 << 0
"""`str.isalnum()`: letters, digits and numbers of every script."""
DIGIT = 1 << 1
"""Decimal digit of any script."""
MARK = 1 << 2
"""Combining mark that changes what is read: vowel signs, accents (Mn, Mc)."""
JOINER = 1 << 3
"""Dropped without ending a word: variation selectors, joiners, bidi marks, apostrophes, enclosing marks."""
SYMBOL = 1 << 4
"""Kept in the key text of short bodies: emoji, arrows, currency, mathematics, private use, unassigned."""
SEPARATOR = 1 << 5
"""Kept between two digits, as the character `separators` names."""
SPACE = 1 << 6
"""`str.isspace()`."""
UNSPACED = 1 << 7
"""Of a script written without blanks between words."""
CASED = 1 << 8
"""Case folding changes it."""
GROWS = 1 << 9
"""Case folding makes two or three of it."""
MAPPED = 1 << 10
"""NFKC changes it even when it stands alone."""
COMPLEX = 1 << 11
"""NFKC may reorder it or compose it with what stands before."""
LONG_RUN = 1 << 31
"""Of rows only: more COMPLEX characters in a row than are normalised together."""

HAS_UNFOLD = 1 << 12
HAS_LINK = 1 << 13
HAS_VIDEO = 1 << 14
HAS_TAG = 1 << 15
HAS_SLASH = 1 << 16
HAS_AT = 1 << 17
HAS_W = 1 << 18
HAS_TWO = 1 << 19
HAS_CARD = 1 << 20
HAS_R = 1 << 21
_TRIGGERS = (
    (HAS_UNFOLD, "收展"),
    (HAS_LINK, "网"),
    (HAS_VIDEO, "频"),
    (HAS_TAG, "#"),
    (HAS_SLASH, "/"),
    (HAS_AT, "@"),
    (HAS_W, "wW"),
    (HAS_TWO, "2"),
    (HAS_CARD, "LO"),
    (HAS_R, "R"),
)
"""Characters without which a rule cannot match; a row whose bits lack them skips the rule."""

CODE_POINTS = 0x110000
CARD_MARK = CODE_POINTS
"""Stands for a dropped card mark between the rules and the key; no text can contain it."""
REPLACEMENT = 0xFFFD
SEQUENCE = 1 << 31
"""In `mapping` and `folding`: the other bits are a row of `sequences`."""

_SPECIAL_PLANES = 0x20000
_MAPPED_PLANES = 0x30000
_COMPATIBILITY_HAN = range(0x2F800, 0x2FA20)
_SPECIAL_PURPOSE = range(0xE0000, 0xE1000)
_TAG_CHARACTERS = range(0xE0020, 0xE007F)
_DECORATION = "~^`|"
_APOSTROPHES = "'\u2019"
_ZERO_WIDTH_SPACE = 0x200B
_IGNORED_MARKS = (
    0x034F, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F,
    *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0),
)  # fmt: skip

NUMBER_SEPARATORS = {
    ".": ".·٫",
    ",": ",、",
    ":": ":∶",
    "/": "/⁄∕",
    "-": "-‐‑‒–—―−~〜∼",
    "+": "+",
    "*": "*×",
}
"""What may stand inside a number, and as which ASCII mark it is kept: "3~5天" reads like "3-5天", not "35天".

One mark between two digits, nothing else: "3--5" is "35", as is "3 5".
"""


class Tables(NamedTuple):
    """Lookups by code point; every kernel takes what it needs.

    properties: uint32[CODE_POINTS + 1], the bits above; the last entry is CARD_MARK's
    mapping: uint32[_MAPPED_PLANES], NFKC of a code point that has MAPPED
    folding: uint32[_SPECIAL_PLANES], case folding of a code point that has CASED
    separators: uint32[_SPECIAL_PLANES], what a SEPARATOR is kept as
    sequences, sequence_starts: uint32[], int32[], the longer results of both
    """

    properties: NDArray[np.uint32]
    mapping: NDArray[np.uint32]
    folding: NDArray[np.uint32]
    separators: NDArray[np.uint32]
    sequences: NDArray[np.uint32]
    sequence_starts: NDArray[np.int32]


def _class_bits(code: int, category: str) -> int:
    if code in _TAG_CHARACTERS:
        return SYMBOL
    if category in ("Mn", "Mc"):
        return JOINER if code in _IGNORED_MARKS else MARK
    if category in ("Cf", "Me"):
        return 0 if code == _ZERO_WIDTH_SPACE else JOINER
    if category[0] in "LN" or category in ("Cc", "Cs", "Zs", "Zl", "Zp") or category[0] == "P":
        return 0
    return SYMBOL


def _classes() -> NDArray[np.uint32]:
    codes = np.arange(CODE_POINTS, dtype="<u4").view("<U1")
    alnum = np.strings.isalnum(codes)
    properties = np.zeros(CODE_POINTS + 1, dtype=np.uint32)
    every = properties[:CODE_POINTS]
    every[~alnum] = SYMBOL
    special = [*np.flatnonzero(~alnum[:_SPECIAL_PLANES]).tolist(), *_SPECIAL_PURPOSE]
    every[special] = [_class_bits(code, unicodedata.category(chr(code))) for code in special]
    every[alnum] |= LETTER
    every[:_SPECIAL_PLANES][np.strings.isdecimal(codes[:_SPECIAL_PLANES])] |= DIGIT
    every[:_SPECIAL_PLANES][np.strings.isspace(codes[:_SPECIAL_PLANES])] |= SPACE
    every[unspaced_table()] |= UNSPACED
    for text in _APOSTROPHES:
        every[ord(text)] = JOINER
    for text in _DECORATION:
        every[ord(text)] &= ~np.uint32(SYMBOL)
    for bit, texts in _TRIGGERS:
        for text in texts:
            every[ord(text)] |= bit
    return properties


def _decompositions() -> dict[int, list[str]]:
    """What the database says each code point is made of; Hangul syllables are made by rule and left out."""
    found = {}
    for code in chain(range(_SPECIAL_PLANES), _COMPATIBILITY_HAN):
        parts = unicodedata.decomposition(chr(code))
        if parts:
            found[code] = parts.split()
    return found


def _composes_backward(decompositions: dict[int, list[str]]) -> set[int]:
    """Code points that NFKC may join to the one before them: second halves, and vowel and final jamo."""
    halves = {
        int(parts[1], 16) for parts in decompositions.values() if len(parts) == 2 and parts[0][0] != "<"
    }
    return halves.union(range(0x1161, 0x1176), range(0x11A8, 0x11C3))


@cache
def tables() -> Tables:
    """The tables of this Python's Unicode version, built on the first call."""
    properties = _classes()
    mapping = np.zeros(_MAPPED_PLANES, dtype=np.uint32)
    folding = np.zeros(_SPECIAL_PLANES, dtype=np.uint32)
    separators = np.zeros(_SPECIAL_PLANES, dtype=np.uint32)
    sequences: list[int] = []
    sequence_starts = [0]

    def entry(text: str) -> int:
        if len(text) == 1:
            return ord(text)
        sequences.extend(map(ord, text))
        sequence_starts.append(len(sequences))
        return SEQUENCE | (len(sequence_starts) - 2)

    for kept, texts in NUMBER_SEPARATORS.items():
        for text in texts:
            properties[ord(text)] |= SEPARATOR
            separators[ord(text)] = ord(kept)
    for code in range(_SPECIAL_PLANES):
        char = chr(code)
        folded = char.casefold()
        if folded != char:
            folding[code] = entry(folded)
            properties[code] |= CASED if len(folded) == 1 else CASED | GROWS
    decompositions = _decompositions()
    backward = _composes_backward(decompositions)
    marks = np.flatnonzero(properties[:CODE_POINTS] & (MARK | JOINER)).tolist()
    backward.update(code for code in marks if unicodedata.combining(chr(code)))
    # Properties of the results first: a mapped code point takes over the bits of what it becomes,
    # so that the bits of a raw row already say which rules can match its normalised text.
    for code in decompositions:
        text = unicodedata.normalize("NFKC", chr(code))
        if ord(unicodedata.normalize("NFKD", chr(code))[0]) in backward:
            backward.add(code)
        if text != chr(code):
            mapping[code] = entry(text)
            properties[code] = MAPPED | int(np.bitwise_or.reduce(properties[[ord(c) for c in text]]))
    properties[sorted(backward)] |= COMPLEX
    return Tables(
        properties,
        mapping,
        folding,
        separators,
        np.array(sequences, dtype=np.uint32),
        np.array(sequence_starts, dtype=np.int32),
    )
