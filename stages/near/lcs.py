"""Length of the longest common subsequence (LCS) of one query and many texts, bit-parallel.

The state has one bit for each query character, 64 bits to a word. The addition of one step goes through all
words, and each word passes its carry to the next. What both texts begin and end with needs no steps: of most
candidates that are alike, that is nearly all.
source: Hyyrö 2004, "Bit-parallel LCS-length computation revisited"
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import STORED_LENGTH
from twinsieve.stages.intrinsics import popcount
from twinsieve.stages.kernel import ZERO, kernel

_DIRECT = 1024
"""Characters below this code point stand in the cell of their number, others are hashed into _DIRECT more."""
_CELLS = 2 * _DIRECT
_WORDS = STORED_LENGTH // 64
_HASH = np.uint32(2654435769)
_SHIFT = np.uint32(32 - 10)
_STEP = 16
"""Characters of the text between two checks whether the subsequence can still become long enough."""


class Pattern(NamedTuple):
    """At which positions of the query each character stands, as bit masks; scratch memory of one thread.

    keys: uint32[_CELLS], a hash table: character + 1, or 0 for an empty cell
    masks: uint64[_CELLS, _WORDS], for the character of a cell: bit j of a mask is position j of the query
    touched: int32[STORED_LENGTH], the cells in use
    header: int64[2], (number of cells in use, query length)
    rows: uint64[_WORDS], working memory of one comparison
    """

    keys: NDArray[np.uint32]
    masks: NDArray[np.uint64]
    touched: NDArray[np.int32]
    header: NDArray[np.int64]
    rows: NDArray[np.uint64]


def new_pattern() -> Pattern:
    """An empty pattern."""
    return Pattern(
        np.zeros(_CELLS, np.uint32),
        np.zeros((_CELLS, _WORDS), np.uint64),
        np.zeros(STORED_LENGTH, np.int32),
        np.zeros(2, np.int64),
        np.zeros(_WORDS, np.uint64),
    )


@kernel(callee=True)
def _cell(keys: NDArray[np.uint32], char: np.uint32) -> np.int64:
    if char < np.uint32(_DIRECT):
        return np.int64(char)
    key = np.uint32(char + np.uint32(1))
    cell = np.int64(np.uint32(key * _HASH) >> _SHIFT)
    while keys[_DIRECT + cell] != key and keys[_DIRECT + cell] != np.uint32(0):
        cell = (cell + 1) & (_DIRECT - 1)
    return _DIRECT + cell


@kernel
def set_pattern(pattern: Pattern, chars: NDArray[np.uint32], start: int, length: int) -> None:
    """Replace the query of the pattern by chars[start:start + length]. length: at most STORED_LENGTH"""
    keys, masks, touched, header = pattern.keys, pattern.masks, pattern.touched, pattern.header
    for j in range(header[0]):
        cell = np.int64(touched[j])
        keys[cell] = 0
        for word in range(_WORDS):
            masks[cell, word] = 0
    used = 0
    for j in range(length):
        cell = _cell(keys, chars[start + j])
        if keys[cell] == np.uint32(0):
            keys[cell] = np.uint32(chars[start + j] + np.uint32(1))
            touched[used] = cell
            used += 1
        masks[cell, j >> 6] |= np.uint64(1) << np.uint64(j & 63)
    header[0] = used
    header[1] = length


@kernel
def shared_ends(
    chars: NDArray[np.uint32],
    start: int,
    query_length: int,
    texts: NDArray[np.uint16],
    offset: int,
    length: int,
    wide: bool,
) -> tuple[int, int]:
    """(number of characters that the query and a stored text begin with; that they end with, behind these)

    chars, start: the query is chars[start:start + query_length]; the others as for `lcs_with_stored`
    """
    head, tail = ZERO, ZERO
    shorter = min(query_length, length)
    while head < shorter and chars[start + head] == stored_char(texts, offset, head, wide):
        head += 1
    last, other_last = start + query_length - 1, length - 1
    while tail < shorter - head and chars[last - tail] == stored_char(texts, offset, other_last - tail, wide):
        tail += 1
    return head, tail


@kernel
def lcs_with_stored(
    pattern: Pattern,
    query_length: int,
    texts: NDArray[np.uint16],
    offset: int,
    length: int,
    wide: bool,
    ends: tuple[int, int],
    least: int,
) -> int:
    """Length of the longest common subsequence of the first characters of the query and one stored text.

    query_length: number of first characters of the query to compare, 0 to its length
    texts: uint16 arena; the text is `length` characters from `offset` on; if `wide`, two units a character
    ends: result of `shared_ends` for both
    least: what the caller needs; if the length is below it, the result is any number below it
    """
    head, tail = ends
    query_length, length, least = query_length - tail, length - tail, least - tail
    if head in (query_length, length):
        return head + tail
    if query_length <= 128:
        return tail + _lcs_of_two_words(pattern, query_length, texts, offset, head, length, wide, least)
    keys, masks, rows = pattern.keys, pattern.masks, pattern.rows
    words = (query_length + 63) >> 6
    for word in range(words):
        # The state behind the common head: each of its characters has made the subsequence longer by one.
        rows[word] = ~_low_bits(min(max(head - (word << 6), ZERO), 64))
    for j in range(head, length):
        if (j - head) % _STEP == 0 and _common(rows, words, query_length) + length - j < least:
            break
        cell = _cell(keys, np.uint32(stored_char(texts, offset, j, wide)))
        if keys[cell] == np.uint32(0):
            continue
        carry = np.uint64(0)
        for word in range(words):
            row = rows[word]
            hits = row & masks[cell, word]
            total = row + hits
            carried = total + carry
            overflow = np.uint64(total < row) | np.uint64(carried < total)
            rows[word] = carried | (row - hits)
            carry = overflow
    return tail + _common(rows, words, query_length)


@kernel(callee=True)
def _lcs_of_two_words(
    pattern: Pattern,
    query_length: int,
    texts: NDArray[np.uint16],
    offset: int,
    head: int,
    length: int,
    wide: bool,
    least: int,
) -> int:
    """`lcs_with_stored` for a query of at most 128 characters: both words of the state stay in registers.

    head: number of characters that both begin with
    """
    keys, masks = pattern.keys, pattern.masks
    low, high = ~_low_bits(min(head, 64)), ~_low_bits(max(head - 64, 0))
    low_bits, high_bits = _low_bits(min(query_length, 64)), _low_bits(max(query_length - 64, 0))
    common = head
    first = head
    while first < length and common + length - first >= least:
        end = min(first + _STEP, length)
        for j in range(first, end):
            cell = _cell(keys, np.uint32(stored_char(texts, offset, j, wide)))
            hits = low & masks[cell, 0]
            total = low + hits
            carry = np.uint64(total < low)
            low = total | (low - hits)
            hits = high & masks[cell, 1]
            high = (high + hits + carry) | (high - hits)
        common = np.int64(popcount(~low & low_bits)) + np.int64(popcount(~high & high_bits))
        first = end
    return common


@kernel(callee=True)
def _common(rows: NDArray[np.uint64], words: int, query_length: int) -> int:
    """Number of query characters that are in the longest common subsequence so far."""
    common = ZERO
    for word in range(words - 1):
        common += np.int64(popcount(~rows[word]))
    return common + np.int64(popcount(~rows[words - 1] & _low_bits(query_length - ((words - 1) << 6))))


@kernel(callee=True)
def _low_bits(count: int) -> np.uint64:
    if count >= 64:
        return ~np.uint64(0)
    return (np.uint64(1) << np.uint64(count)) - np.uint64(1)


@kernel(callee=True)
def stored_char(texts: NDArray[np.uint16], offset: int, index: int, wide: bool) -> np.uint32:
    """Code point of the character with number `index` of a stored text."""
    if wide:
        low = np.uint32(texts[offset + 2 * index])
        return low | (np.uint32(texts[offset + 2 * index + 1]) << np.uint32(16))
    return np.uint32(texts[offset + index])
