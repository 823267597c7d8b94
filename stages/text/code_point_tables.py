"""Tables by code point for kernels: property bits, compatibility mapping (NFKC) and case folding.

They are built once, at their first use, from the Unicode database of `unicode.py` (a test compares every
entry with a database of that version).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import starts_of
from twinsieve.stages.text.scripts import UNSPACED_RANGES
from twinsieve.stages.text.unicode import CATEGORIES, CATEGORY, IS_ALNUM, IS_DECIMAL, IS_SPACE, database

LETTER = 1 << 0
"""Property bit: letter, digit or number of any script, as `str.isalnum()` defines it."""
DIGIT = 1 << 1
"""Property bit: decimal digit of any script."""
MARK = 1 << 2
"""Property bit: combining mark that belongs to the spelling: vowel signs, accents (Mn, Mc)."""
JOINER = 1 << 3
"""Property bit: the character is dropped, but does not end a word: variation selectors, joiners, bidi marks,
apostrophes, enclosing marks."""
SYMBOL = 1 << 4
"""Property bit: the key text of a short body keeps the character: emoji, arrows, currency, mathematics,
private use, unassigned."""
SEPARATOR = 1 << 5
"""Property bit: between two digits, a body keeps the character, in the form of `Tables.separators`."""
SPACE = 1 << 6
"""Property bit: blank, as `str.isspace()` defines it."""
UNSPACED = 1 << 7
"""Property bit: character of a script written without blanks between words."""
CASED = 1 << 8
"""Property bit: case folding changes the character."""
GROWS = 1 << 9
"""Property bit: case folding turns the character into two or three."""
MAPPED = 1 << 10
"""Property bit: NFKC changes the character even if no other stands next to it."""
COMPLEX = 1 << 11
"""Property bit: NFKC may reorder the character, or compose it with the one before."""

SIGN = 1 << 22
"""Property bit: the character can be a minus before a number; `keys.py` decides whether it is one."""
CURRENCY = 1 << 23
COMPARISON = 1 << 24
NO_SIGN_AFTER = 1 << 25
"""Property bit: a dash right after the character is a hyphen or part of a range: COVID-19, 5%-8%, 3月-5月."""
BETWEEN = 1 << 26
"""Property bit: the character may begin a mark with a meaning, between two words (→) or right after one (C#,
C++, S23+, A-), or be an operator (a + b)."""

OPERATOR = 1 << 27
"""Property bit: the character may be an operator between two terms (`LETTER_OPERATORS`)."""

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
"""(property bit, characters). A rule of a profile can match only if a row has one of its characters. So the
rule is skipped for rows without the bit."""

CODE_POINTS = 0x110000
CARD_MARK = CODE_POINTS
"""Replaces a card mark between the rules of the profile and the writing of the key. It is no code point, so
no text contains it."""
REPLACEMENT = 0xFFFD
SEQUENCE = 1 << 31
"""Bit of an entry of `mapping` or `folding`: the other bits are not a character, but a row of `sequences`."""

SPECIAL_PLANES = 0x20000
"""Length of most tables below. Code points from here on are only Han, tags and private use, so that they need
no entry."""
MAPPED_PLANES = 0x30000
"""Length of `Tables.mapping`; NFKC changes no code point from here on."""
_TAG_CHARACTERS = slice(0xE0020, 0xE007F)
_DECORATION = "~^`|"
_APOSTROPHES = "'\u2019"
_ZERO_WIDTH_SPACE = 0x200B
_IGNORED_MARKS = (
    0x034F, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F,
    *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0),
)  # fmt: skip
_OPTIONAL_POINTS = (
    *range(0x0610, 0x061B), 0x0640, *range(0x064B, 0x0653), 0x0670,
    *range(0x06D6, 0x06DD), *range(0x06DF, 0x06E5), 0x06E7, 0x06E8, *range(0x06EA, 0x06EE),
    *range(0x0591, 0x05BE), 0x05BF, 0x05C1, 0x05C2, 0x05C4, 0x05C5, 0x05C7,
)  # fmt: skip
"""Vowel points and other signs of Arabic and Hebrew that readers do without, and the tatweel, a stroke that
only stretches a word: bodies drop them. The signs of other scripts (Thai, Hindi) are vowels, and stay.
source: The Unicode Standard, 9.1 and 9.2"""
_TURKISH_I = (0x0130, 0x0131)
_SMALL_I = np.array([ord("i")], np.uint32)
_KEYBOARDS = {0x06CC: 0x064A, 0x06A9: 0x0643, 0x06C1: 0x0647}
"""ی ک ہ as ي ك ه: letters that one reader types on one keyboard and another on the other."""
_DOT_ABOVE = 0x0307
"""NFKC has composed it with the letter before where there is such a letter; İ in small letters leaves it
behind an i, where no Turkish text has it."""
_VOWEL_JAMO = slice(0x1161, 0x1176)
_FINAL_JAMO = slice(0x11A8, 0x11C3)

NUMBER_SEPARATORS = {
    ".": ".·٫",
    ",": ",、",
    ":": ":∶",
    "/": "/⁄∕÷",
    "-": "-‐‑‒–—―−~〜∼",
    "+": "+",
    "*": "*×∗⋅",
    "^": "^",
    "±": "±",
}
"""Characters that may stand inside a number, by the ASCII mark that the body keeps for them. So "3~5天"
becomes "3-5天", not "35天".

Only a single mark between two digits is kept: "3--5" becomes "35", and so does "3 5". Blanks around a mark of
SPACED_OPERATORS change nothing: "12 + 5" becomes "12+5".
"""
SPACED_OPERATORS = "+-*/^±"
"""Marks inside a number that also stand between two numbers with blanks around them."""
LETTER_OPERATORS = {
    "+": "+",
    "*": "*×∗⋅",
    "±": "±",
    "∪": "∪",
    "∩": "∩",
    "∧": "∧",
    "∨": "∨",
    "&": "&",
    "|": "|",
}
"""Signs between two terms (numbers and single letters: a + b, 3x * y), by the character that a body keeps.

No sign that often stands between such terms and joins none: a dash, a slash (A/B, F-16).
"""

NUMBER_PREFIXES = {"-": "-−–", "<": "<", ">": ">", "≤": "≤≦⩽", "≥": "≥≧⩾"}
"""Signs and comparisons that belong to the number after them, by the character that the body keeps for them.

Currencies are all characters of category Sc; the body keeps them unchanged.
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
"""Arrows, marks for yes and no, and comparisons, by the character that the body keeps for them between two
words.

`Tables.separators` has the same entries, except for ×, which is kept as * inside a number.
"""
DASHES = "-−–—"
"""Characters that, besides the equals sign, can form the shaft of an ASCII arrow (-->)."""
_BEGIN_A_MARK = DASHES + "!#" + "".join(LETTER_OPERATORS.values())
_NOT_BEFORE_A_SIGN = "%‰°)]零〇一二三四五六七八九十百千万亿两萬億兩日号月年点时居號點時"

IN_NUMBER_DIGIT = 1
IN_NUMBER_PREFIX = 2
IN_NUMBER_SEPARATOR = 4


class Tables(NamedTuple):
    """Tables by code point.

    properties: uint32[CODE_POINTS + 1], the property bits above; the last entry is that of CARD_MARK
    mapping: uint32[MAPPED_PLANES], NFKC of each code point alone
    folding: uint32[SPECIAL_PLANES], case folding of a code point with CASED
    separators: uint32[SPECIAL_PLANES], the character that a body keeps for a SEPARATOR, SIGN, CURRENCY,
        COMPARISON or mark between words
    sequences, sequence_starts: uint32[], int32[], the results of mapping and folding with several characters;
        result i is sequences[sequence_starts[i]:sequence_starts[i + 1]]
    """

    properties: NDArray[np.uint32]
    mapping: NDArray[np.uint32]
    folding: NDArray[np.uint32]
    separators: NDArray[np.uint32]
    sequences: NDArray[np.uint32]
    sequence_starts: NDArray[np.int32]


class Changes(NamedTuple):
    """The code points that a Unicode rule changes, ascending, and their results.

    codes: uint32[n]; starts: int64[n + 1]; texts: uint32[starts[n]]
    codes[i] becomes texts[starts[i]:starts[i + 1]]
    """

    codes: NDArray[np.uint32]
    starts: NDArray[np.int64]
    texts: NDArray[np.uint32]


def case_folds() -> Changes:
    """Case folding as bodies have it: that of Unicode, but for the Turkish İ and ı, which become i, and for
    letters of Persian and Urdu keyboards, which become those of Arabic ones.

    Unicode makes I an i, İ an i with a dot, and leaves ı. So one Turkish word would be two words in capitals
    and in small letters.
    """
    folds = changes("folding")
    texts = np.split(folds.texts, folds.starts[1:-1])
    by_code = dict(zip(folds.codes.tolist(), texts, strict=True)) | dict.fromkeys(_TURKISH_I, _SMALL_I)
    by_code |= {code: np.array([letter], np.uint32) for code, letter in _KEYBOARDS.items()}
    codes = np.array(sorted(by_code), np.uint32)
    kept = [by_code[code] for code in codes.tolist()]
    return Changes(codes, starts_of(np.array(list(map(len, kept)))), np.concatenate(kept))


def changes(rule: str) -> Changes:
    """The changes of a Unicode rule, except for Hangul syllables. rule: `folding`, `nfkc` or `nfkd`"""
    frozen = database()
    return Changes(frozen[f"{rule}_codes"], starts_of(frozen[f"{rule}_lengths"]), frozen[f"{rule}_texts"])


def kinds() -> NDArray[np.uint16]:
    """uint16[CODE_POINTS]: the kind of each code point, category and bits (`unicode.py`)."""
    frozen = database()
    return np.repeat(frozen["kind_values"], frozen["kind_lengths"])


def combining_classes() -> NDArray[np.uint8]:
    """uint8[SPECIAL_PLANES]: canonical combining class of each code point."""
    frozen = database()
    every = np.repeat(frozen["combining_values"].astype(np.uint8), frozen["combining_lengths"])
    return every[:SPECIAL_PLANES]


def _bits_of_kinds() -> NDArray[np.uint32]:
    """uint32[256]: property bits of each kind of code point."""
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
    frozen = database()
    properties = np.zeros(CODE_POINTS + 1, dtype=np.uint32)
    every = properties[:CODE_POINTS]
    bits, lengths = _bits_of_kinds()[frozen["kind_values"]], frozen["kind_lengths"]
    # Nearly all runs are in the first planes. The few behind them are long, and are filled as slices.
    ends = np.cumsum(lengths)
    short = int(np.searchsorted(ends, SPECIAL_PLANES))
    first = int(ends[short - 1])
    every[:first] = np.repeat(bits[:short], lengths[:short])
    for run_bits, end in zip(bits[short:].tolist(), ends[short:].tolist(), strict=True):
        every[first:end] = run_bits
        first = end
    every[_TAG_CHARACTERS] = SYMBOL
    every[[*_IGNORED_MARKS, *_OPTIONAL_POINTS, _DOT_ABOVE]] = JOINER
    every[_ZERO_WIDTH_SPACE] = 0
    for first, last in UNSPACED_RANGES:
        every[first : last + 1] |= UNSPACED
    every[_codes(_APOSTROPHES)] = JOINER
    every[_codes(_DECORATION)] &= ~np.uint32(SYMBOL)
    # Code points behind these planes are no digits, and their letters are unspaced.
    spelled = every[:SPECIAL_PLANES]
    spelled[(spelled & DIGIT != 0) | (spelled & (LETTER | UNSPACED) == LETTER)] |= NO_SIGN_AFTER
    for bit, texts in (*_TRIGGERS, (NO_SIGN_AFTER, _NOT_BEFORE_A_SIGN)):
        every[_codes(texts)] |= bit
    for kept, texts in NUMBER_PREFIXES.items():
        every[_codes(texts)] |= SIGN if kept == "-" else COMPARISON
    for texts in NUMBER_SEPARATORS.values():
        every[_codes(texts)] |= SEPARATOR
    for texts in (*BETWEEN_WORDS.values(), _BEGIN_A_MARK):
        every[_codes(texts)] |= BETWEEN
    for texts in LETTER_OPERATORS.values():
        every[_codes(texts)] |= OPERATOR
    return properties


def _codes(texts: str) -> list[int]:
    return [ord(text) for text in texts]


def _entries(changed: Changes, first_row: int) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """(table entry of each changed code point, whether it becomes several characters)

    first_row: row in `sequences` of the first result with several characters
    """
    several = np.diff(changed.starts) > 1
    rows = np.cumsum(several) - 1 + first_row
    entries = np.where(several, SEQUENCE | rows, changed.texts[changed.starts[:-1]])
    return entries.astype(np.uint32), several


def _several(changed: Changes) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """(all results with several characters, one after another; their lengths)"""
    lengths = np.diff(changed.starts)
    return changed.texts[np.repeat(lengths > 1, lengths)], lengths[lengths > 1]


def _composes_backward() -> NDArray[np.bool_]:
    """bool[CODE_POINTS]: whether NFKC may move a code point, or compose it with the one before.

    True for combining marks, for second code points of a composition, for vowel and final jamo, and for code
    points whose decomposition begins with one of these.
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
    """The tables of UNICODE_VERSION; the first call builds them."""
    properties = _classes()
    mapping = np.arange(MAPPED_PLANES, dtype=np.uint32)
    folding = np.zeros(SPECIAL_PLANES, dtype=np.uint32)
    separators = np.zeros(SPECIAL_PLANES, dtype=np.uint32)
    currencies = np.flatnonzero(properties[:SPECIAL_PLANES] & CURRENCY)
    separators[currencies] = currencies
    # A later entry replaces an earlier one: so the table has * for ×, as inside a number. Comparisons have
    # the same entry before a number and between words.
    kept_as = (*BETWEEN_WORDS.items(), *LETTER_OPERATORS.items(), *NUMBER_SEPARATORS.items())
    for kept, texts in (*kept_as, *NUMBER_PREFIXES.items()):
        separators[_codes(texts)] = ord(kept)
    folds, mapped = case_folds(), changes("nfkc")
    entries, grow = _entries(folds, 0)
    folding[folds.codes] = entries
    properties[folds.codes] |= np.where(grow, CASED | GROWS, CASED).astype(np.uint32)
    mapping[mapped.codes] = _entries(mapped, int(grow.sum()))[0]
    # A mapped code point gets the property bits of all characters of its result. So the bits of a raw row
    # already show which rules can match the normalised text.
    properties[mapped.codes] = MAPPED | np.bitwise_or.reduceat(properties[mapped.texts], mapped.starts[:-1])
    properties[np.flatnonzero(_composes_backward())] |= COMPLEX
    (grown, grown_lengths), (spelled, spelled_lengths) = _several(folds), _several(mapped)
    sequences = np.concatenate((grown, spelled))
    starts = starts_of(np.concatenate((grown_lengths, spelled_lengths)))
    return Tables(properties, mapping, folding, separators, sequences, starts.astype(np.int32))


@cache
def number_parts() -> NDArray[np.uint8]:
    """uint8[SPECIAL_PLANES]: which part of a number each character can be, as IN_NUMBER_… bits; else 0."""
    parts = np.zeros(SPECIAL_PLANES, dtype=np.uint8)
    every = kinds()[:SPECIAL_PLANES]
    parts[every & IS_DECIMAL != 0] = IN_NUMBER_DIGIT
    parts[every & CATEGORY == CATEGORIES.index("Sc")] = IN_NUMBER_PREFIX
    parts[_codes("".join(NUMBER_PREFIXES))] |= IN_NUMBER_PREFIX
    parts[_codes("".join(NUMBER_SEPARATORS))] |= IN_NUMBER_SEPARATOR
    return parts
