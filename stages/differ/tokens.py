"""Cuts a body into tokens, by which two bodies are aligned, and gives each token a weight.

A token is one character of an unspaced script, a word of another script, a number with the separators and the
sign that belong to it ("-3.5", "9:30"), or a mix of letters and digits ("h5n1", "5kg"). Digits may be of any
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
    CORRECTS,
    CURRENCY,
    DIGIT,
    EXCLUDES,
    LENGTHS_SHIFT,
    LIGHT,
    MAX_PHRASE,
    NEGATES,
    NUMBER_MARK,
    NUMERAL,
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
_UP_TO_LENGTHS = (1 << (LENGTHS_SHIFT + MAX_PHRASE)) - 1

_REFERENCE_KINDS = 3


class Tokens(NamedTuple):
    """The tokens of one body. Each thread has its own object, and `tokenize` overwrites it for each body.

    chars: uint32[STORED_LENGTH]; word_starts: uint8[STORED_LENGTH], as in `Bodies`
    ids: uint64[…], equal for equal tokens, and for two spellings of one word (`Phrases.ids`)
    kinds: uint8[…], such as WORD; points: int64[…], weight of a token
    facts: uint32[…], bits of `phrases`. CHARACTER: its class; NUMBER and MIX: DIGIT; WORD: its roles if it is
        a phrase, with the bit for phrases of one token, and NUMBER_MARK if it ends with a mark (a+)
    starts: int64[…], token i is chars[starts[i]:starts[i + 1]]
    counts: int64[3], (number of tokens, 1 if the body is cut after them, end of its references)
        The references are chars[starts[counts[0]]:counts[2]], two characters each; a cut body has none
    """

    chars: NDArray[np.uint32]
    word_starts: NDArray[np.uint8]
    ids: NDArray[np.uint64]
    kinds: NDArray[np.uint8]
    points: NDArray[np.int64]
    facts: NDArray[np.uint32]
    starts: NDArray[np.int64]
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
        np.zeros(3, np.int64),
    )


_OF_WORDS = LIGHT | NUMERAL | NEGATES | EXCLUDES | CORRECTS | AGENCY | POWER | CURRENCY


@kernel(callee=True)
def class_of(char: np.uint32, phrases: Phrases) -> int:
    """Class of a character, as in `Phrases.classes`; characters beyond that table are UNSPACED."""
    return np.int64(phrases.classes[char]) if char < np.uint32(SPECIAL_PLANES) else np.int64(UNSPACED)


@kernel(callee=True)
def tokenize(tokens: Tokens, length: int, cut: bool, phrases: Phrases) -> None:
    """Find the tokens of chars[:length] and write them to `tokens`.

    cut: whether the body continues after these characters. Then a last token that is no CHARACTER is left
        out, because its end is unknown
    """
    chars, starts = tokens.chars, tokens.word_starts
    count = i = ZERO
    while i < length and chars[i] < np.uint32(FIRST_REFERENCE):
        first = class_of(chars[i], phrases)
        j = i + 1
        if first & (UNSPACED | DIGIT) == UNSPACED:
            tokens.kinds[count] = CHARACTER
            tokens.ids[count] = np.uint64(chars[i])
            tokens.points[count] = 0 if first & LIGHT else 2
            tokens.facts[count] = np.uint32(first)
        else:
            every = first
            letters = first & (DIGIT | NUMBER_MARK) == 0
            while j < length and not starts[j]:
                following = class_of(chars[j], phrases)
                if following & (UNSPACED | DIGIT) == UNSPACED:
                    break
                every |= following
                letters |= following & (DIGIT | NUMBER_MARK) == 0
                j += 1
            if cut and j == length:
                break
            key = hash_of(chars, i, j)
            row = find(phrases, key) if letters or not every & DIGIT else np.int64(-1)
            tokens.ids[count] = key if row < 0 else phrases.ids[row]
            if not every & DIGIT:
                tokens.kinds[count] = WORD
                facts = ZERO if row < 0 else np.int64(phrases.roles[row]) & _OF_WORDS | (1 << LENGTHS_SHIFT)
                if every & NUMBER_MARK and j - i > 1 and class_of(chars[j - 1], phrases) & NUMBER_MARK:
                    facts |= NUMBER_MARK
                tokens.facts[count] = np.uint32(facts)
                tokens.points[count] = 1 if facts & LIGHT else min(2 + j - i, 8)
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
