"""Names that the weights of tokens do not show: with a light character (地震), of one or two letters (UK)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.content import says_something
from twinsieve.stages.differ.phrases import AGENCY, LIGHT, NAME, NEGATES, Phrases, find, hash_of
from twinsieve.stages.differ.tokens import CHARACTER, WORD, Tokens
from twinsieve.stages.kernel import ZERO, kernel

_CHARACTER = 2
"""Points of one character of an unspaced script."""
_LONGEST = 3
_LETTERS = 2
_FIRST_LETTER, _ASCII = np.uint32(ord("a")), np.uint32(0x80)
_CYRILLIC, _CYRILLIC_END = np.uint32(0x400), np.uint32(0x500)
_HANGUL, _HANGUL_END = np.uint32(0xAC00), np.uint32(0xD7A4)


@kernel(callee=True)
def character_points(tokens: Tokens, first: int, end: int, phrases: Phrases) -> int:
    """Points of the characters in tokens[first:end]; a light one counts in a listed name that holds it."""
    total = ZERO
    position = first
    while position < end:
        size = _name_at(tokens, position, end, phrases)
        if size:
            total += _CHARACTER * size
            position += size
            continue
        total += tokens.points[position] if tokens.kinds[position] == CHARACTER else 0
        position += 1
    return total


@kernel(callee=True)
def _name_at(tokens: Tokens, position: int, end: int, phrases: Phrases) -> int:
    """Number of characters of a listed name with a light character that begins at a token; 0 for none."""
    is_character = tokens.kinds[position] == CHARACTER
    light = is_character and tokens.facts[position] & LIGHT != 0
    longest = ZERO
    for size in range(2, min(_LONGEST, end - position) + 1):
        at = position + size - 1
        is_character = is_character and tokens.kinds[at] == CHARACTER
        light = light or tokens.facts[at] & LIGHT != 0
        if is_character and light:
            row = find(phrases, hash_of(tokens.chars, tokens.starts[position], tokens.starts[at + 1]))
            if row >= 0 and phrases.roles[row] & NAME:
                longest = np.int64(size)
    return longest


@kernel(callee=True)
def are_short_names(run: NDArray[np.int64], later: Tokens, earlier: Tokens) -> bool:
    """Whether one name of at most two letters stands in the place of another name (UK / US, LG / Bosch).

    A longer name must not be what the letters stand for: pl / please.
    """
    if run[1] - run[0] != 1 or run[3] - run[2] != 1:
        return False
    if _is_short_name(later, run[0]):
        return _is_short_name(earlier, run[2]) or _is_another(later, run[0], earlier, run[2])
    return _is_short_name(earlier, run[2]) and _is_another(earlier, run[2], later, run[0])


@kernel(callee=True)
def _is_another(short: Tokens, a: int, long: Tokens, b: int) -> bool:
    """Whether a word that says something has not the two letters of a short name, in their order."""
    first, i = short.starts[a], short.starts[a]
    end = short.starts[a + 1]
    if end - first < _LETTERS or not says_something(long, b):
        return False
    for k in range(long.starts[b], long.starts[b + 1]):
        if i < end and long.chars[k] == short.chars[i]:
            i += 1
    return i < end


@kernel(callee=True)
def is_hangul(char: np.uint32) -> bool:
    """Whether a character is a syllable of Hangul."""
    return bool(_HANGUL <= char < _HANGUL_END)


@kernel(callee=True)
def _is_short_name(tokens: Tokens, position: int) -> bool:
    """Whether a token is a word of two letters, and light in no language that is spoken, or listed as a name.

    One letter is such a name before a word that says something, as in S-Klasse; of Hangul it is a word.
    In scripts that leave out or combine vowels, two letters are a whole word; there it is no name.
    """
    first = tokens.starts[position]
    length = tokens.starts[position + 1] - first
    if tokens.kinds[position] != WORD or length > _LETTERS:
        return False
    for k in range(first, first + length):
        char = tokens.chars[k]
        alphabet = char < _ASCII or _CYRILLIC <= char < _CYRILLIC_END
        if not alphabet and not _HANGUL <= char < _HANGUL_END:
            return False
    if length < _LETTERS:
        char = tokens.chars[first]
        before_word = position + 1 < tokens.counts[0] and says_something(tokens, position + 1)
        if not before_word or char < _FIRST_LETTER or char >= _HANGUL:
            return False
    facts = tokens.facts[position]
    return facts & NAME != 0 or facts & (LIGHT | AGENCY | NEGATES) == 0
