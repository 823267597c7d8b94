"""Cuts a body into tokens, by which two bodies are aligned, and gives each token a weight.

A token is one character of an unspaced script, a word of another script, a number with the separators and the
sign that belong to it ("-3.5", "9:30"), or a mix of letters and digits ("h5n1", "5kg"). Letters of Hangul
that form no syllable (ㅋㅋ) are a word of their own, which says little. Digits may be of any
script, for example Thai. After the tokens, a body may hold references: its links, @names and tags, as two
private-use characters each (`stages.text.references`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import STORED_LENGTH
from twinsieve.stages.differ.phrases import (
    AGENCY,
    BELOW_ZERO,
    CORRECTS,
    COUNTER,
    CURRENCY,
    DIGIT,
    EVERY_LANGUAGE,
    EXCLUDES,
    IDIOM,
    INSIDE,
    LAST_PART,
    LAUGHS,
    LENGTHS_SHIFT,
    LIGHT,
    MAX_PHRASE,
    MEASURE,
    MORE,
    NAME,
    NEGATES,
    NUMBER_MARK,
    NUMBERED,
    NUMERAL,
    ONE,
    PART,
    POWER,
    UNSPACED,
    Phrases,
    find,
    hash_of,
)
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.text.code_point_tables import SPECIAL_PLANES
from twinsieve.stages.text.references import FIRST_REFERENCE, PER_KIND

CHARACTER, WORD, NUMBER, MIX = 0, 1, 2, 3
"""Kinds of tokens."""
LIGHT_POINTS = 1
"""Points of a light word."""
_HALF = tuple(map(ord, "1/2"))
_PART = 4
"""Greatest number of characters of a part of a word that makes it a negation."""
_UP_TO_LENGTHS = (1 << (LENGTHS_SHIFT + MAX_PHRASE)) - 1

_REFERENCE_KINDS = 3
_FIRST_JAMO, _LAST_JAMO = np.uint32(0x1100), np.uint32(0x11FF)


class Tokens(NamedTuple):
    """The tokens of one body. Each thread has its own object, and `tokenize` overwrites it for each body.

    chars: uint32[STORED_LENGTH]; word_starts: uint8[STORED_LENGTH], as in `Bodies`
    ids: uint64[…], equal for equal tokens, and for two spellings of one word (`Phrases.ids`)
    kinds: uint8[…], such as WORD; points: int64[…], weight of a token
    facts: uint32[…], bits of `phrases`. CHARACTER: its class; NUMBER and MIX: DIGIT; WORD: its roles if it is
        a phrase, with the bit for phrases of one token, and NUMBER_MARK if it ends with a mark (a+)
    starts: int64[…], token i is chars[starts[i]:starts[i + 1]]
    rows: int32[…], row of a word among the phrases, or -1; undefined for a CHARACTER
    counts: int64[7], (number of tokens, 1 if the body is cut after them, end of its references, languages in
        which all words have all their roles (`Phrases.common`), number of CHARACTER tokens, of LIGHT words,
        1 if words lost roles (`spoken.py`))
        The references are chars[starts[counts[0]]:counts[2]], two characters each; a cut body has none
    """

    chars: NDArray[np.uint32]
    word_starts: NDArray[np.uint8]
    ids: NDArray[np.uint64]
    kinds: NDArray[np.uint8]
    points: NDArray[np.int64]
    facts: NDArray[np.uint32]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]


def new_tokens(room: int = STORED_LENGTH) -> Tokens:
    """New memory for `room` characters of a body."""
    return Tokens(
        np.zeros(room, np.uint32),
        np.zeros(room, np.uint8),
        np.zeros(room + 1, np.uint64),
        np.zeros(room + 1, np.uint8),
        np.zeros(room + 1, np.int64),
        np.zeros(room + 1, np.uint32),
        np.zeros(room + 2, np.int64),
        np.zeros(room + 1, np.int32),
        np.zeros(7, np.int64),
    )


_OF_WORDS = (LIGHT | NUMERAL | NEGATES | EXCLUDES | CORRECTS | AGENCY | POWER | CURRENCY) | (
    ONE | BELOW_ZERO | MORE | COUNTER | PART | LAST_PART | NAME
)


@kernel(callee=True)
def class_of(char: np.uint32, phrases: Phrases) -> int:
    """Class of a character, as in `Phrases.classes`; characters beyond that table are UNSPACED."""
    return np.int64(phrases.classes[char]) if char < np.uint32(SPECIAL_PLANES) else np.int64(UNSPACED)


@kernel(callee=True)
def is_jamo(char: np.uint32) -> bool:
    """Whether a character is a letter of Hangul outside of a syllable: laughter, tears."""
    return _FIRST_JAMO <= char <= _LAST_JAMO


@kernel(callee=True)
def tokenize(tokens: Tokens, length: int, cut: bool, phrases: Phrases) -> None:
    """Find the tokens of chars[:length] and write them to `tokens`.

    cut: whether the body continues after these characters. Then a last token that is no CHARACTER is left
        out, because its end is unknown
    """
    chars, starts = tokens.chars, tokens.word_starts
    count = i = characters = light = ZERO
    common = np.int64(EVERY_LANGUAGE)
    while i < length and chars[i] < np.uint32(FIRST_REFERENCE):
        first = class_of(chars[i], phrases)
        j = i + 1
        if first & (UNSPACED | DIGIT) == UNSPACED:
            tokens.kinds[count] = CHARACTER
            tokens.ids[count] = np.uint64(chars[i])
            tokens.points[count] = 0 if first & LIGHT else 2
            tokens.facts[count] = np.uint32(first)
            characters += 1
        else:
            every = first
            reaction = is_jamo(chars[i])
            letters = first & (DIGIT | NUMBER_MARK) == 0
            while j < length and not starts[j]:
                following = class_of(chars[j], phrases)
                if following & (UNSPACED | DIGIT) == UNSPACED or is_jamo(chars[j]) != reaction:
                    break
                every |= following
                letters |= following & (DIGIT | NUMBER_MARK) == 0
                j += 1
            if cut and j == length:
                break
            key = hash_of(chars, i, j)
            fraction = j - i == len(_HALF) and chars[i + 1] == _HALF[1]
            row = find(phrases, key) if letters or fraction or not every & DIGIT else np.int64(-1)
            tokens.ids[count] = key if row < 0 else phrases.ids[row]
            tokens.rows[count] = row
            if not every & DIGIT:
                tokens.kinds[count] = WORD
                facts = ZERO if row < 0 else np.int64(phrases.roles[row]) & _OF_WORDS | (1 << LENGTHS_SHIFT)
                if every & NUMBER_MARK and j - i > 1 and class_of(chars[j - 1], phrases) & NUMBER_MARK:
                    facts |= NUMBER_MARK
                if reaction:
                    facts |= LIGHT
                if row >= 0:
                    common &= np.int64(phrases.common[row])
                    light += facts & LIGHT != 0 and np.int64(phrases.held[row, 0]) != EVERY_LANGUAGE
                if every & NEGATES and _denies_inside(chars, i, j, phrases):
                    facts |= NEGATES
                tokens.facts[count] = np.uint32(facts)
                tokens.points[count] = LIGHT_POINTS if facts & LIGHT else _points_of(j - i)
            elif not letters and (
                _is_laughter(tokens, count, i, j, length, phrases) or _is_heart(tokens, i, j, length, phrases)
            ):
                tokens.kinds[count] = WORD
                tokens.ids[count] = hash_of(chars, i, min(j, i + LAUGHTER))
                tokens.facts[count] = np.uint32(LIGHT | LAUGHS)
                tokens.points[count] = 1
            else:
                tokens.kinds[count] = MIX if letters else NUMBER
                tokens.facts[count] = np.uint32(DIGIT)
                tokens.points[count] = min(1 + j - i, 8)
        tokens.starts[count] = i
        count += 1
        i = j
    tokens.starts[count] = i
    tokens.counts[0] = count
    tokens.counts[1] = cut
    tokens.counts[2] = i if cut else length
    tokens.counts[3] = common
    tokens.counts[4] = characters
    tokens.counts[5] = light
    tokens.counts[6] = 0


@kernel(callee=True)
def _points_of(length: int) -> int:
    """Points of a word of so many letters that is not light."""
    return np.int64(min(2 + length, 8))


@kernel(callee=True)
def word_points(tokens: Tokens, position: int) -> int:
    """Points of a word that is not light here."""
    return _points_of(tokens.starts[position + 1] - tokens.starts[position])


@kernel(callee=True)
def _denies_inside(chars: NDArray[np.uint32], first: int, end: int, phrases: Phrases) -> bool:
    """Whether chars[first:end], a word, has a part that denies (못했다), and none of an idiom (못지않다)."""
    denies = False
    for start in range(first, end):
        for stop in range(start + 1, min(start + _PART, end) + 1):
            row = find(phrases, hash_of(chars, start, stop))
            if row >= 0:
                if phrases.roles[row] & IDIOM:
                    return False
                denies |= phrases.roles[row] & INSIDE != 0
    return denies


LAUGHTER = 3
"""Digits that begin a laugh; how many follow says nothing."""
_LONGEST_NAME = MAX_PHRASE
_TWO, _THREE = 2, 3
_PLUS = ord("+")
_LESS, _DIGIT_THREE = ord("<"), ord("3")


@kernel(callee=True)
def _is_laughter(tokens: Tokens, count: int, first: int, end: int, length: int, phrases: Phrases) -> bool:
    """Whether digits laugh or clap: 2333, 666, 555, 888 at the end of a clause of an unspaced script.

    Only there digits do so, and only with nothing that makes them a number: a measure behind (元, บาท), or
    before them what is numbered (第, 房间). count: of the tokens before; length: of the body

    They are one digit repeated, or a 2 with 3s behind it; a plus may end them (555+).
    """
    chars = tokens.chars
    stop = end - (chars[end - 1] == _PLUS)
    if stop - first < LAUGHTER:
        return False
    for i in range(first, stop):
        if not class_of(chars[i], phrases) & DIGIT:
            return False
    one, rest = phrases.worth[chars[first]], phrases.worth[chars[stop - 1]]
    if one == 0 or not (one == rest or (one == _TWO and rest == _THREE)):
        return False
    for i in range(first + 1, stop):
        if phrases.worth[chars[i]] != rest:
            return False
    is_last = end == length or chars[end] >= np.uint32(FIRST_REFERENCE)
    if not is_last and not tokens.word_starts[end]:
        return False
    if count > 0:
        if tokens.kinds[count - 1] != CHARACTER or tokens.facts[count - 1] & NUMERAL:
            return False
        for size in range(1, min(_LONGEST_NAME, first) + 1):
            if _has_role(chars, first - size, first, NUMBERED, phrases):
                return False
    if is_last:
        return count > 0
    follows = class_of(chars[end], phrases)
    if follows & (DIGIT | NUMBER_MARK):
        return False
    if follows & UNSPACED:
        for size in range(1, min(_LONGEST_NAME, length - end) + 1):
            if _has_role(chars, end, end + size, MEASURE, phrases):
                return False
        return True
    stop = end + 1
    while stop < length and not tokens.word_starts[stop] and not class_of(chars[stop], phrases) & UNSPACED:
        stop += 1
    return count > 0 and not _has_role(chars, end, stop, CURRENCY | POWER | EXCLUDES | MEASURE, phrases)


@kernel(callee=True)
def _is_heart(tokens: Tokens, first: int, end: int, length: int, phrases: Phrases) -> bool:
    """Whether a mark and a number are the heart <3: at the end, or before a word that counts nothing."""
    chars = tokens.chars
    if chars[first] != _LESS or end - first < 2:
        return False
    for i in range(first + 1, end):
        if chars[i] != _DIGIT_THREE:
            return False
    if end == length or chars[end] >= np.uint32(FIRST_REFERENCE) or chars[end] == _LESS:
        return True
    if class_of(chars[end], phrases) & UNSPACED:
        for size in range(1, min(_LONGEST_NAME, length - end) + 1):
            if _has_role(chars, end, end + size, MEASURE, phrases):
                return False
        return True
    stop = end + 1
    while stop < length and not tokens.word_starts[stop] and not class_of(chars[stop], phrases) & UNSPACED:
        stop += 1
    return _has_role(chars, end, stop, LIGHT, phrases)


@kernel(callee=True)
def _has_role(chars: NDArray[np.uint32], first: int, end: int, roles: int, phrases: Phrases) -> bool:
    """Whether chars[first:end] is a phrase with one of these roles."""
    row = find(phrases, hash_of(chars, first, end))
    return row >= 0 and np.int64(phrases.roles[row]) & roles != 0


@kernel(callee=True)
def other_reference(tokens: Tokens, other_tokens: Tokens) -> int:
    """The first kind of references in which the bodies contradict each other: each body has a reference of
    this kind that the other body lacks. 0 stands for links, 1 for @names, 2 for tags, -1 for no such kind."""
    for kind in range(_REFERENCE_KINDS):
        if _refers_elsewhere(tokens, other_tokens, kind) and _refers_elsewhere(other_tokens, tokens, kind):
            return np.int64(kind)
    return np.int64(-1)


@kernel(callee=True)
def _refers_elsewhere(tokens: Tokens, other_tokens: Tokens, kind: int) -> bool:
    """Whether the body of `tokens` has a reference of this kind that the body of `other_tokens` lacks.

    kind: 0 for links, 1 for @names, 2 for tags
    """
    for position in range(tokens.starts[tokens.counts[0]], tokens.counts[2] - 1, 2):
        if (np.int64(tokens.chars[position]) - FIRST_REFERENCE) // PER_KIND != kind:
            continue
        is_shared = False
        for other_position in range(
            other_tokens.starts[other_tokens.counts[0]], other_tokens.counts[2] - 1, 2
        ):
            is_shared |= (
                other_tokens.chars[other_position] == tokens.chars[position]
                and other_tokens.chars[other_position + 1] == tokens.chars[position + 1]
            )
        if not is_shared:
            return True
    return False


@kernel
def find_tokens(tokens: Tokens, length: int, cut: bool, phrases: Phrases) -> None:
    """`tokenize` for calls from Python."""
    tokenize(tokens, length, cut, phrases)


_BLANK, _ELLIPSIS = np.uint32(ord(" ")), np.uint32(ord("…"))


@kernel(callee=True)
def write_tokens(tokens: Tokens, first: int, end: int, out: NDArray[np.uint32]) -> None:
    """Write tokens[first:end] as readable text, with blanks between words.

    out: uint32[room], zeros; a longer text is cut, and its last character is an ellipsis
    """
    length = ZERO
    for number in range(first, end):
        if number > first and tokens.kinds[number] != CHARACTER and tokens.kinds[number - 1] != CHARACTER:
            if length < len(out):
                out[length] = _BLANK
            length += 1
        for k in range(tokens.starts[number], tokens.starts[number + 1]):
            if length < len(out):
                out[length] = tokens.chars[k]
            length += 1
    if length > len(out):
        out[len(out) - 1] = _ELLIPSIS


@kernel(callee=True)
def have_equal_chars(tokens: Tokens, first: int, others: Tokens, other: int, length: int) -> bool:
    """Whether `length` characters from chars[first] on equal those of the others from chars[other] on."""
    for k in range(length):  # noqa: SIM110
        if tokens.chars[first + k] != others.chars[other + k]:
            return False
    return True


@kernel(callee=True)
def phrase_lengths(tokens: Tokens, position: int, end: int) -> int:
    """The possible lengths of a phrase that begins at token `position` and ends before token `end`.

    Bit k - 1 of the result is set if the phrase may have k tokens. A phrase of a spaced script is one word,
    so it has one token. In unspaced scripts only few characters begin phrases, and for most of these
    characters the phrases have only one or two lengths. So only few token sequences must be hashed and looked
    up.
    """
    lengths = (np.int64(tokens.facts[position]) & _UP_TO_LENGTHS) >> LENGTHS_SHIFT
    room = np.int64(1)
    while lengths >> room != 0 and position + room < end and tokens.kinds[position + room] == CHARACTER:
        room += 1
    return lengths & ((np.int64(1) << room) - 1)


@kernel(callee=True)
def phrase_row(tokens: Tokens, position: int, length: int, lengths: int, phrases: Phrases) -> int:
    """Row of the phrase that consists of the `length` tokens from `position` on; -1 if they are no phrase.

    lengths: result of `phrase_lengths` for this token
    """
    if not (lengths >> (length - 1)) & 1:
        return np.int64(-1)
    return find(phrases, hash_of(tokens.chars, tokens.starts[position], tokens.starts[position + length]))
