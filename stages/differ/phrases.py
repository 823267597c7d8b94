"""The words that the rules use: the lists of `data/words/`, as tables for kernels.

Each entry is a statement about a word that a reader can check. A *phrase* is one word of a spaced script, or
up to MAX_PHRASE characters of an unspaced script, written as in bodies: NFKC, case-folded, without
apostrophes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import FNV_OFFSET, FNV_PRIME, GOLDEN
from twinsieve.stages.kernel import kernel

MAX_PHRASE = 8
"""Greatest number of characters of a phrase of an unspaced script."""

UNSPACED, DIGIT, NUMBER_MARK = 1, 2, 4
"""Bits of a character's class. A NUMBER_MARK is a sign, a currency or a separator."""
LIGHT, NUMERAL, NEGATES, EXCLUDES, CORRECTS = 8, 16, 32, 64, 128
"""Bits of a phrase's roles: LIGHT has little meaning (the, 的), NUMERAL is a number in words, NEGATES is a
negation, EXCLUDES has senses: it is a weekday, month, day or opposite, or of one of the
kinds below, CORRECTS is a correction.

They are also bits of a character's class. There LIGHT and NUMERAL (a Chinese numeral) describe the character
itself. The other bits mean that a phrase with this role begins with the character.
"""
LENGTHS_SHIFT = 8
"""First bit of the phrase lengths in a character's class: bit LENGTHS_SHIFT + k - 1 means that a phrase of k
characters begins with the character."""
IDIOM = 256
"""Role of a phrase that contains a negation, but does not negate."""
AGENCY, POWER, CURRENCY = 1 << 16, 1 << 17, 1 << 18
"""Bits of a word's roles and of its facts. An AGENCY word (breaking, video) begins or ends a headline and
says nothing of the news; a POWER (million) multiplies the number before it; a CURRENCY (dollars) stands for
the sign before a number."""
NAME, LAUGHS, BLAND = 1 << 9, 1 << 10, 1 << 11
"""NAME is the role of a phrase that is a name although it is short or holds a light character (uk, 地震).
LAUGHS is a fact of digits that laugh or clap (2333, 555, 888): a light word, and no number. BLAND is the role
of a phrase of an unspaced script that says little in a short text: particles, degree, courtesy. In the facts
of a CHARACTER these bits are lengths."""
EMOTICON = 1 << 12
"""Role of the name of an emoticon, whose brackets bodies drop: [不要], [左哼哼]."""

ONE, BELOW_ZERO, MORE, COUNTER = 1 << 24, 1 << 25, 1 << 26, 1 << 27
"""Bits of a word's roles and facts. A ONE (a, un) is the number 1 where the other body gives a number there;
BELOW_ZERO (degrees, balance) says that a number may be negative; MORE (another) makes a number one of others;
a COUNTER (views, likes) counts how often a message was seen."""
NUMBERED, MEASURE, PART, LAST_PART = 1 << 28, 1 << 29, 1 << 30, 1 << 31
"""More such bits. NUMBERED (第, 房间) says that a number follows, a MEASURE (元, บาท) that one came before; a
PART (episode, 回) is numbered in a series, and a LAST_PART (final, 最終) stands where a number would."""

CONCORD, ASKS, INSIDE, DENIED = 1 << 19, 1 << 20, 1 << 21, 1 << 22
"""Further roles. A CONCORD word is one negation with another one near it (ne … pas). An ASKS word at the
end of a body makes a question. An INSIDE part makes the word that holds it a negation. A word with a
DENIED ending denies the same word with another ending."""
BEGINS_DENIED = CORRECTS
"""Bit of the class of a letter with which a DENIED ending begins; letters begin no phrases."""
FOREIGN = 1 << 23
"""Fact of a word that negates, but not in the languages of the two bodies."""
HELD = (LIGHT, NEGATES, CORRECTS, AGENCY, NUMERAL)
"""The roles that a word has only in the languages whose lists give them."""
HELD_NEGATION = HELD.index(NEGATES)
ENGLISH = 1
"""The bit of English among languages."""
EVERY_LANGUAGE = 0xFFFF_FFFF
"""All languages: those of a list that belongs to none, and those of bodies whose language is not known."""

MONTHS = 1
CALENDAR_KINDS = 3
"""Senses of the kinds 0, 1 and 2 are weekdays, months and days."""
STAGES, INFINITIVES, OUTLETS, INSTITUTIONS, GREETINGS, UNITS, ORDINALS = 3, 4, 5, 6, 7, 8, 9
"""Kinds of senses that exclude nothing: what stage of an event a phrase says, words before an infinitive, and
words that end the name of an outlet or of an institution, words of greeting, units of measure,
and endings of ordinals."""
HARM, EDITION = 3, 6
"""The stages that tell of dead and injured, and of another edition of a thing."""
FIRST_OPPOSITE = 10
"""Each kind of senses from here on is one entry of the list of opposites."""

BASES = 0x3000
"""Code points below this one have an entry in `Phrases.bases`; no alphabet with accents lies above."""

_TOP = 1 << 63
_MASK = (1 << 64) - 1


class Phrases(NamedTuple):
    """The lists as tables. Each phrase has a row, which `find` returns.

    classes: uint16[SPECIAL_PLANES], class of each character: what it is, and which phrases begin with it
    worth: int64[SPECIAL_PLANES], value of a decimal digit or a Chinese numeral
    cells: int32[2**k], hash table of row + 1, or 0 for an empty cell; keys: uint64[n], `hash_of` each phrase
    ids: uint64[n], key of the first spelling of the same word (colour, color): the id of its tokens
    roles: uint32[n], roles of each phrase, bits from LIGHT to LAST_PART
    number: int64[n], value of a number in words, power of ten of a POWER, sign of a CURRENCY; else -1
    senses: int64[], sense_starts: int64[n + 1], the senses of each phrase. A sense is kind << 8 | side.
        Two phrases with senses of one kind and different sides exclude each other: other days, or opposites
    endings: uint64[m], sorted, `hash_of` each grammatical ending; languages: uint32[m], the languages of an
        ending, as bits
    bases: uint32[BASES], each character without its accents
    held: uint32[n, len(HELD)], the languages in which a phrase has each of these roles, as bits. A DENIED
        ending has its languages at HELD_NEGATION
    common: uint32[n], the languages in which a phrase has all of these roles that it has
    beside: uint32[32], by language: itself and those whose words are mixed into it
    version: uint64[1], 8 bits of a hash of the built-in negations and numerals, on which tallies depend
    """

    classes: NDArray[np.uint16]
    worth: NDArray[np.int64]
    cells: NDArray[np.int32]
    keys: NDArray[np.uint64]
    ids: NDArray[np.uint64]
    roles: NDArray[np.uint32]
    number: NDArray[np.int64]
    senses: NDArray[np.int64]
    sense_starts: NDArray[np.int64]
    endings: NDArray[np.uint64]
    languages: NDArray[np.uint32]
    bases: NDArray[np.uint32]
    held: NDArray[np.uint32]
    common: NDArray[np.uint32]
    beside: NDArray[np.uint32]
    version: NDArray[np.uint64]


@kernel(callee=True)
def hash_of(chars: NDArray[np.uint32], first: int, end: int) -> np.uint64:
    """Hash of chars[first:end]. Its highest bit is always set, so no hash equals a code point."""
    value = FNV_OFFSET
    for k in range(first, end):
        value = (value ^ np.uint64(chars[k])) * FNV_PRIME
    return (value ^ (value >> np.uint64(29))) | np.uint64(1 << 63)


def key_of(phrase: str) -> int:
    """`hash_of` a phrase, computed in Python without a kernel.

    >>> f"{key_of('not'):x}"
    'a15ad6182f582f83'
    """
    value = int(FNV_OFFSET)
    for char in phrase:
        value = (value ^ ord(char)) * int(FNV_PRIME) & _MASK
    return (value ^ value >> 29) | _TOP


@kernel(callee=True)
def find(phrases: Phrases, key: np.uint64) -> int:
    """Row of the phrase with this hash, or -1. key: result of `hash_of`"""
    mask = len(phrases.cells) - 1
    cell = np.int64((key * GOLDEN) >> np.uint64(32)) & mask
    while phrases.cells[cell] != 0:
        row = np.int64(phrases.cells[cell]) - 1
        if phrases.keys[row] == key:
            return row
        cell = (cell + 1) & mask
    return np.int64(-1)


@kernel(callee=True)
def has_sense(phrases: Phrases, row: int, sense: int) -> bool:
    """Whether the phrase of a row has a sense."""
    for position in range(phrases.sense_starts[row], phrases.sense_starts[row + 1]):
        if phrases.senses[position] == sense:
            return True
    return False


@kernel(callee=True)
def has_sense_of_kind(phrases: Phrases, row: int, kind: int) -> bool:
    """Whether a phrase has a sense of this kind. row: of the phrase, -1 for none"""
    if row >= 0:
        for position in range(phrases.sense_starts[row], phrases.sense_starts[row + 1]):
            if phrases.senses[position] >> 8 == kind:
                return True
    return False
