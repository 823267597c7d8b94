"""The properties of each code point for kernels: class bits, compatibility mapping and case folding.

Built once, on first use, from the frozen Unicode database of `unicode.py`, whole columns at a time
(a test compares every entry with a database of that version).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import starts_of
from twinsieve.stages.text.scripts import unspaced_table
from twinsieve.stages.text.unicode import CATEGORIES, CATEGORY, IS_ALNUM, IS_DECIMAL, IS_SPACE, database

LETTER = 1 << 0
"""Letters, digits and numbers of every script, as `str.isalnum()` knows them."""
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
"""Blanks, as `str.isspace()` knows them."""
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

SIGN = 1 << 22
"""A minus, where it stands before a number and `keys.py` says so."""
CURRENCY = 1 << 23
COMPARISON = 1 << 24
NO_SIGN_AFTER = 1 << 25
"""A dash behind it is a hyphen or part of a range: COVID-19, 5%-8%, 3月-5月."""
BETWEEN = 1 << 26
"""May begin a mark that says something between two words, or right behind one (C#, C++, S23+, A-)."""

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

SPECIAL_PLANES = 0x20000
"""Code points from here on hold Han, tags, private use and nothing else; no table below goes further."""
_MAPPED_PLANES = 0x30000
_TAG_CHARACTERS = slice(0xE0020, 0xE007F)
_DECORATION = "~^`|"
_APOSTROPHES = "'\u2019"
_ZERO_WIDTH_SPACE = 0x200B
_IGNORED_MARKS = (
    0x034F, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F,
    *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0),
)  # fmt: skip
_VOWEL_JAMO = slice(0x1161, 0x1176)
_FINAL_JAMO = slice(0x11A8, 0x11C3)

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

NUMBER_PREFIXES = {"-": "-−–", "<": "<", ">": ">", "≤": "≤≦⩽", "≥": "≥≧⩾"}
"""Signs and comparisons that belong to the number they stand before, and as what they are kept.

Currencies are all characters of category Sc, kept as they are.
"""

BETWEEN_WORDS = {
    "→": "→⇒⇨⇢⇾➔➙➛➜➝➞➟➠➡➨⟶⟹⭢",
    "←": "←⇐⇦⇠⇽⟵⟸⬅⭠",
    "↔": "↔⇔⇄⇆⇿⟷⟺⬌",
    "↑": "↑⇑⇧⇡⬆⭡↗⬈",
    "↓": "↓⇓⇩⇣⬇⭣↘⬊",
    "✓": "✓✔✅☑√○◯⭕",
    "✗": "✗✘✕✖❌❎☒×",
    "<": "<",
    ">": ">",
    "≤": "≤≦⩽",
    "≥": "≥≧⩾",
    "=": "=",
    "≠": "≠",
}
"""Arrows, marks for yes and no and comparisons, by what they are kept as where they stand between two words.

`separators` has them too, but for ×, which inside a number is kept as *.
"""
DASHES = "-−–—"
"""What shafts of ASCII arrows are made of, beside equals signs."""
_BEGIN_A_MARK = DASHES + "!#+"
_NOT_BEFORE_A_SIGN = "%‰°)]零〇一二三四五六七八九十百千万亿两萬億兩日号月年点时居號點時"

IN_NUMBER_DIGIT = 1
IN_NUMBER_PREFIX = 2
IN_NUMBER_SEPARATOR = 4


class Tables(NamedTuple):
    """Lookups by code point; every kernel takes what it needs.

    properties: uint32[CODE_POINTS + 1], the bits above; the last entry is CARD_MARK's
    mapping: uint32[_MAPPED_PLANES], NFKC of a code point that has MAPPED
    folding: uint32[SPECIAL_PLANES], case folding of a code point that has CASED
    separators: uint32[SPECIAL_PLANES], what a SEPARATOR, a SIGN, CURRENCY or COMPARISON, or a mark between
        words is kept as
    sequences, sequence_starts: uint32[], int32[], the longer results of mapping and folding
    """

    properties: NDArray[np.uint32]
    mapping: NDArray[np.uint32]
    folding: NDArray[np.uint32]
    separators: NDArray[np.uint32]
    sequences: NDArray[np.uint32]
    sequence_starts: NDArray[np.int32]


class Changes(NamedTuple):
    """Code points that one of the rules changes, ascending, and what they become, one after another.

    codes: uint32[n]; starts: int64[n + 1]; texts: uint32[starts[n]]
    """

    codes: NDArray[np.uint32]
    starts: NDArray[np.int64]
    texts: NDArray[np.uint32]


def changes(rule: str) -> Changes:
    """What the rule `folding`, `nfkc` or `nfkd` changes, but for Hangul syllables."""
    frozen = database()
    return Changes(frozen[f"{rule}_codes"], starts_of(frozen[f"{rule}_lengths"]), frozen[f"{rule}_texts"])


def kinds() -> NDArray[np.uint16]:
    """uint16[CODE_POINTS], category and bits of each code point, as `unicode.py` has them."""
    frozen = database()
    return np.repeat(frozen["kind_values"], frozen["kind_lengths"])


def combining_classes() -> NDArray[np.uint8]:
    """uint8[SPECIAL_PLANES], canonical combining class of each code point."""
    frozen = database()
    every = np.repeat(frozen["combining_values"].astype(np.uint8), frozen["combining_lengths"])
    return every[:SPECIAL_PLANES]


def _bits_of_kinds() -> NDArray[np.uint32]:
    """uint32[256], property bits of each kind."""
    bits = np.zeros(256, dtype=np.uint32)
    for kind in range(256):
        if (kind & CATEGORY) >= len(CATEGORIES):
            continue
        category = CATEGORIES[kind & CATEGORY]
        if kind & IS_ALNUM:
            bits[kind] = LETTER
        elif category in ("Mn", "Mc"):
            bits[kind] = MARK
        elif category in ("Cf", "Me"):
            bits[kind] = JOINER
        elif category[0] not in "LNPZ" and category not in ("Cc", "Cs"):
            bits[kind] = SYMBOL
        if category == "Sc":
            bits[kind] |= CURRENCY
        if kind & IS_DECIMAL:
            bits[kind] |= DIGIT
        if kind & IS_SPACE:
            bits[kind] |= SPACE
    return bits


def _classes() -> NDArray[np.uint32]:
    properties = np.zeros(CODE_POINTS + 1, dtype=np.uint32)
    every = properties[:CODE_POINTS]
    every[:] = _bits_of_kinds()[kinds()]
    every[_TAG_CHARACTERS] = SYMBOL
    every[list(_IGNORED_MARKS)] = JOINER
    every[_ZERO_WIDTH_SPACE] = 0
    every[unspaced_table()] |= UNSPACED
    every[_codes(_APOSTROPHES)] = JOINER
    every[_codes(_DECORATION)] &= ~np.uint32(SYMBOL)
    every[(every & DIGIT != 0) | (every & (LETTER | UNSPACED) == LETTER)] |= NO_SIGN_AFTER
    for bit, texts in (*_TRIGGERS, (NO_SIGN_AFTER, _NOT_BEFORE_A_SIGN)):
        every[_codes(texts)] |= bit
    for kept, texts in NUMBER_PREFIXES.items():
        every[_codes(texts)] |= SIGN if kept == "-" else COMPARISON
    for texts in NUMBER_SEPARATORS.values():
        every[_codes(texts)] |= SEPARATOR
    for texts in (*BETWEEN_WORDS.values(), _BEGIN_A_MARK):
        every[_codes(texts)] |= BETWEEN
    return properties


def _codes(texts: str) -> list[int]:
    return [ord(text) for text in texts]


def _entries(changed: Changes, first_row: int) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """What a table holds for each changed code point, and which of them become several.

    first_row: in `sequences`, of the first that becomes several
    """
    several = np.diff(changed.starts) > 1
    rows = np.cumsum(several) - 1 + first_row
    entries = np.where(several, SEQUENCE | rows, changed.texts[changed.starts[:-1]])
    return entries.astype(np.uint32), several


def _several(changed: Changes) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The results of more than one character, one after another, and their lengths."""
    lengths = np.diff(changed.starts)
    return changed.texts[np.repeat(lengths > 1, lengths)], lengths[lengths > 1]


def _composes_backward() -> NDArray[np.bool_]:
    """bool[CODE_POINTS], what NFKC may move, or join to the code point before it.

    Combining marks, second halves, vowel and final jamo, and what begins with one of them when taken apart.
    """
    backward = np.zeros(CODE_POINTS, dtype=np.bool_)
    backward[:SPECIAL_PLANES] = combining_classes() != 0
    backward[database()["pairs"][:, 1]] = True
    backward[_VOWEL_JAMO] = True
    backward[_FINAL_JAMO] = True
    apart = changes("nfkd")
    backward[apart.codes[backward[apart.texts[apart.starts[:-1]]]]] = True
    return backward


@cache
def tables() -> Tables:
    """The tables of UNICODE_VERSION, built on the first call."""
    properties = _classes()
    mapping = np.zeros(_MAPPED_PLANES, dtype=np.uint32)
    folding = np.zeros(SPECIAL_PLANES, dtype=np.uint32)
    separators = np.zeros(SPECIAL_PLANES, dtype=np.uint32)
    currencies = np.flatnonzero(properties & CURRENCY)
    separators[currencies] = currencies
    # Later ones win: × is kept as * inside a number, comparisons alike before a number and between words.
    for kept, texts in (*BETWEEN_WORDS.items(), *NUMBER_SEPARATORS.items(), *NUMBER_PREFIXES.items()):
        separators[_codes(texts)] = ord(kept)
    folds, mapped = changes("folding"), changes("nfkc")
    entries, grow = _entries(folds, 0)
    folding[folds.codes] = entries
    properties[folds.codes] |= np.where(grow, CASED | GROWS, CASED).astype(np.uint32)
    mapping[mapped.codes] = _entries(mapped, int(grow.sum()))[0]
    # Properties of the results first: a mapped code point takes over the bits of what it becomes,
    # so that the bits of a raw row already say which rules can match its normalised text.
    properties[mapped.codes] = MAPPED | np.bitwise_or.reduceat(properties[mapped.texts], mapped.starts[:-1])
    properties[:CODE_POINTS][_composes_backward()] |= COMPLEX
    (grown, grown_lengths), (spelled, spelled_lengths) = _several(folds), _several(mapped)
    sequences = np.concatenate((grown, spelled))
    starts = starts_of(np.concatenate((grown_lengths, spelled_lengths)))
    return Tables(properties, mapping, folding, separators, sequences, starts.astype(np.int32))


@cache
def number_parts() -> NDArray[np.uint8]:
    """uint8[SPECIAL_PLANES], what each character of a body is to a number: IN_NUMBER bits, or 0."""
    parts = np.zeros(SPECIAL_PLANES, dtype=np.uint8)
    every = kinds()[:SPECIAL_PLANES]
    parts[every & IS_DECIMAL != 0] = IN_NUMBER_DIGIT
    parts[every & CATEGORY == CATEGORIES.index("Sc")] = IN_NUMBER_PREFIX
    parts[_codes("".join(NUMBER_PREFIXES))] |= IN_NUMBER_PREFIX
    parts[_codes("".join(NUMBER_SEPARATORS))] |= IN_NUMBER_SEPARATOR
    return parts
