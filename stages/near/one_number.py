"""Tells two bodies that differ in one number alone, without aligning them.

Bills, codes and posts with a counter are alike to dozens of others that a number keeps apart. What both
bodies begin and end with is known from the comparison of their characters; if one number of digits alone
stands between, the rule `number` holds, and it is the first of the guards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.counted import counts_readers, has_others
from twinsieve.stages.differ.phrases import AGENCY, Phrases
from twinsieve.stages.differ.tokens import LAUGHTER, NUMBER, WORD, Tokens
from twinsieve.stages.differ.written import NO_SUCH, half_day_at
from twinsieve.stages.kernel import NO, YES, ZERO, kernel
from twinsieve.stages.near.lcs import stored_char

_MOST_DIGITS = 15
_NO_NUMBER = -1
_DIGIT_0, _DIGIT_9 = np.uint32(ord("0")), np.uint32(ord("9"))


@kernel(callee=True)
def differ_in_a_number(
    later: Tokens,
    word_bits: NDArray[np.uint16],
    length: int,
    texts: NDArray[np.uint16],
    offset: int,
    words: int,
    other: int,
    wide: bool,
    head: int,
    tail: int,
    phrases: Phrases,
) -> bool:
    """Whether the rule `number` holds because of one token of digits, and both bodies are the same beside it.

    If not, nothing is said: the bodies must be aligned.
    later: the tokens of the row's body, which has `length` characters; word_bits: its packed word starts
    texts, offset, words: the arena; where the other body and its word starts begin in it
    other: its number of characters; both bodies are stored whole
    head, tail: number of characters that both bodies begin with, and end with (`lcs.shared_ends`)
    """
    first = head
    while first > 0 and _is_digit(later.chars[first - 1]):
        first -= 1
    end = length - tail
    while end < length and _is_digit(later.chars[end]):
        end += 1
    other_end = end + other - length
    size, other_size = end - first, other_end - first
    if not (0 < size <= _MOST_DIGITS and 0 < other_size <= _MOST_DIGITS):
        return NO
    value, other_value = ZERO, ZERO
    for j in range(first, end):
        if not _is_digit(later.chars[j]):
            return NO
        value = value * 10 + np.int64(later.chars[j] - _DIGIT_0)
    for j in range(first, other_end):
        char = np.uint32(stored_char(texts, offset, j, wide))
        if not _is_digit(char):
            return NO
        other_value = other_value * 10 + np.int64(char - _DIGIT_0)
    if value == other_value:
        return NO
    token = _token_at(later, first)
    if token == _NO_NUMBER or later.kinds[token] != NUMBER or later.starts[token + 1] != end:
        return NO
    if _may_be_no_number(later, token, phrases) or _may_laugh(other_value, other_size):
        return NO
    half, _ = half_day_at(later, token + 1)
    return half == NO_SUCH and _same_words(word_bits, length, texts, words, other, first, end)


@kernel(callee=True)
def _may_be_no_number(tokens: Tokens, token: int, phrases: Phrases) -> bool:
    """Whether digits may count editions of an agency (UPDATE 1) or readers: another number says nothing."""
    if token == 1 and tokens.kinds[0] == WORD:
        row = tokens.rows[0]
        if row >= 0 and phrases.roles[row] & AGENCY:
            return YES
    return has_others(tokens, token) or counts_readers(tokens, token, phrases)


@kernel(callee=True)
def _may_laugh(value: int, digits: int) -> bool:
    """Whether a number is one digit repeated, or a 2 with 3s behind it (555, 2333), which may be laughter."""
    if digits < LAUGHTER:
        return NO
    last = value % 10
    for _ in range(digits - 1):
        if value % 10 != last:
            return NO
        value //= 10
    return value == last or (value == 2 and last == 3)


@kernel(callee=True, inlined=True)
def _is_digit(char: np.uint32) -> bool:
    return _DIGIT_0 <= char <= _DIGIT_9


@kernel(callee=True, inlined=True)
def _token_at(tokens: Tokens, start: int) -> int:
    """The token that begins at this character, or _NO_NUMBER."""
    low, high = ZERO, np.int64(tokens.counts[0])
    while low < high:
        middle = (low + high) >> 1
        if tokens.starts[middle] < start:
            low = middle + 1
        else:
            high = middle
    return low if low < tokens.counts[0] and tokens.starts[low] == start else np.int64(_NO_NUMBER)


@kernel(callee=True, inlined=True)
def _same_words(
    word_bits: NDArray[np.uint16],
    length: int,
    texts: NDArray[np.uint16],
    words: int,
    other: int,
    first: int,
    end: int,
) -> bool:
    """Whether words begin at the same characters in both bodies, up to `first` and from `end` on, and none in
    the number of the other body."""
    whole = (first + 1) >> 4
    for unit in range(whole):
        if word_bits[unit] != texts[words + unit]:
            return NO
    for j in range(16 * whole, first + 1):
        if _bit(word_bits, ZERO, j) != _bit(texts, words, j):
            return NO
    shift = other - length
    for j in range(first + 1, end + shift):
        if _bit(texts, words, j):
            return NO
    for j in range(end, length):
        if _bit(word_bits, ZERO, j) != _bit(texts, words, j + shift):
            return NO
    return YES


@kernel(callee=True, inlined=True)
def _bit(units: NDArray[np.uint16], first: int, j: int) -> bool:
    return (units[first + (j >> 4)] >> np.uint16(j & 15)) & np.uint16(1) != np.uint16(0)
