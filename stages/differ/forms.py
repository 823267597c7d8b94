"""Recognises one word in two forms (get, gets) or spellings; such a word does not count as replaced."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.phrases import BASES, Phrases
from twinsieve.stages.differ.tokens import WORD, Tokens, is_jamo
from twinsieve.stages.intrinsics import FNV_OFFSET, FNV_PRIME
from twinsieve.stages.kernel import ZERO, kernel

_STEM, _SYLLABLES = 3, 2
"""Least letters, or syllables of Hangul, that two forms of a word have in common at their beginning."""
_FIRST_SYLLABLE, _LAST_SYLLABLE = np.uint32(ord("가")), np.uint32(ord("힣"))
_STRETCHED = 3
"""A letter that stands so many times in a row is stretched."""
_TYPED = tuple(tuple(map(ord, letters)) for letters in ("äae", "öoe", "üue", "øoe", "åaa", "æae"))
"""A letter, and the two letters that keyboards without it type."""
_REPEATED = 3
"""Most letters of what laughter repeats: k, ha, jaj."""


@kernel(callee=True)
def is_one_word(later: Tokens, a: int, earlier: Tokens, b: int, phrases: Phrases) -> bool:
    """Whether two tokens are one word: in two spellings, or in two forms.

    Spellings may stretch letters, and laugh for longer. Forms begin with the same letters, at least _STEM and
    at least half of the longer one; of Hangul, _SYLLABLES and half of the shorter one. What follows is an
    ending of one language on both sides. Accents do not count.
    """
    if later.kinds[a] != WORD or earlier.kinds[b] != WORD:
        return False
    if later.ids[a] == earlier.ids[b] or are_spellings(later, a, earlier, b):
        return True
    first, other = later.starts[a], earlier.starts[b]
    n, m = later.starts[a + 1] - first, earlier.starts[b + 1] - other
    if later.chars[first] == earlier.chars[other] and (
        _is_stretched(later, first, n, earlier, other, m) or _laugh(later, first, n, earlier, other, m)
    ):
        return True
    stem = letters_in_common(later, a, earlier, b, phrases)
    if stem == n == m or _are_transliterated(later, first, n, earlier, other, m):
        return True
    if _FIRST_SYLLABLE <= later.chars[first] <= _LAST_SYLLABLE:
        if stem < _SYLLABLES or 2 * stem < min(n, m):
            return False
    elif stem < _STEM or 2 * stem < max(n, m):
        return False
    return endings_of(later, first + stem, first + n, phrases) & endings_of(
        earlier, other + stem, other + m, phrases
    ) != np.uint32(0)


@kernel(callee=True)
def _are_transliterated(later: Tokens, first: int, n: int, earlier: Tokens, other: int, m: int) -> bool:
    """Whether two words are equal but for letters that keyboards lack: ä / ae, ö / oe, ø / oe, å / aa."""
    i = k = ZERO
    while i < n and k < m:
        char, twin = later.chars[first + i], earlier.chars[other + k]
        if char == twin:
            i, k = i + 1, k + 1
        elif i + 1 < n and _is_pair_of(twin, char, later.chars[first + i + 1]):
            i, k = i + 2, k + 1
        elif k + 1 < m and _is_pair_of(char, twin, earlier.chars[other + k + 1]):
            i, k = i + 1, k + 2
        else:
            return False
    return bool(i == n and k == m)


@kernel(callee=True)
def _is_pair_of(letter: np.uint32, one: np.uint32, other: np.uint32) -> bool:
    """Whether two letters are what is typed for one."""
    for k in range(len(_TYPED)):
        if letter == _TYPED[k][0]:
            return bool(one == _TYPED[k][1] and other == _TYPED[k][2])
    return False


@kernel(callee=True)
def has_form(tokens: Tokens, position: int, others: Tokens, first: int, end: int, phrases: Phrases) -> bool:
    """Whether a word is one with a token of others[first:end], in another spelling or form."""
    for other in range(first, end):  # noqa: SIM110
        if is_one_word(tokens, position, others, other, phrases):
            return True
    return False


@kernel(callee=True)
def _is_stretched(later: Tokens, first: int, n: int, earlier: Tokens, other: int, m: int) -> bool:
    """Whether one word has a letter _STRETCHED times or more in a row where the other has it once or more.

    sooo, soooooo. Or it is the other one twice (너무, 너무너무). Letters of Hangul alone (ㅠ, ㅠㅠ) are a
    reaction, however often they stand.

    first, other: where the words begin; n, m: their lengths
    """
    least = 1 if is_jamo(later.chars[first]) else _STRETCHED
    i = k = ZERO
    while i < n and k < m and later.chars[first + i] == earlier.chars[other + k]:
        i_end, k_end = _end_of_letter(later, first, i, n), _end_of_letter(earlier, other, k, m)
        if i_end - i != k_end - k and max(i_end - i, k_end - k) < least:
            break
        i, k = i_end, k_end
    if i == n and k == m:
        return True
    return min(n, m) > 1 and (
        (
            n == 2 * m
            and _repeat(later, first, n, later, first, m)
            and _repeat(earlier, other, m, later, first, m)
        )
        or (m == 2 * n and _repeat(earlier, other, m, later, first, n))
    )


@kernel(callee=True)
def _end_of_letter(tokens: Tokens, first: int, position: int, length: int) -> int:
    """Index after the equal letters that begin at `position` of a word."""
    end = position + 1
    while end < length and tokens.chars[first + end] == tokens.chars[first + position]:
        end += 1
    return end


@kernel(callee=True)
def _laugh(later: Tokens, first: int, n: int, earlier: Tokens, other: int, m: int) -> bool:
    """Whether both words repeat the same one to _REPEATED letters, twice or more (haha, hahahah)."""
    for size in range(1, _REPEATED + 1):
        if (
            min(n, m) >= 2 * size
            and _repeat(later, first, n, later, first, size)
            and _repeat(earlier, other, m, later, first, size)
        ):
            return True
    return False


@kernel(callee=True)
def _repeat(tokens: Tokens, first: int, n: int, of: Tokens, begin: int, size: int) -> bool:
    """Whether a word of n letters is the `size` letters at `begin`, over and over."""
    for k in range(n):  # noqa: SIM110
        if tokens.chars[first + k] != of.chars[begin + k % size]:
            return False
    return True


@kernel(callee=True)
def letters_in_common(later: Tokens, a: int, earlier: Tokens, b: int, phrases: Phrases) -> int:
    """How many letters two words have in common at their beginning; accents do not count."""
    first, other = later.starts[a], earlier.starts[b]
    most = min(later.starts[a + 1] - first, earlier.starts[b + 1] - other)
    alike = ZERO
    while alike < most and _base(later, first + alike, phrases) == _base(earlier, other + alike, phrases):
        alike += 1
    return alike


@kernel(callee=True)
def _base(tokens: Tokens, position: int, phrases: Phrases) -> np.uint32:
    """A character without its accents."""
    char = tokens.chars[position]
    return phrases.bases[char] if char < np.uint32(BASES) else char


@kernel(callee=True)
def hash_of_bases(tokens: Tokens, first: int, end: int, phrases: Phrases) -> np.uint64:
    """`hash_of` chars[first:end] without their accents."""
    value = FNV_OFFSET
    for k in range(first, end):
        value = (value ^ np.uint64(_base(tokens, k, phrases))) * FNV_PRIME
    return (value ^ (value >> np.uint64(29))) | np.uint64(1 << 63)


@kernel(callee=True)
def endings_of(tokens: Tokens, first: int, end: int, phrases: Phrases) -> np.uint32:
    """The languages in which chars[first:end] is a grammatical ending, as bits."""
    key = hash_of_bases(tokens, first, end, phrases)
    place = np.searchsorted(phrases.endings, key)
    if place < len(phrases.endings) and phrases.endings[place] == key:
        return phrases.languages[place]
    return np.uint32(0)


@kernel(callee=True)
def are_spellings(later: Tokens, a: int, earlier: Tokens, b: int) -> bool:
    """Whether two words are probably one word in two spellings.

    Either one has one more letter than the other, which has at least 4 letters. Or both have the same length,
    at least 5 letters, and differ in one letter, or in the order of two neighbours.
    """
    if later.kinds[a] != WORD or earlier.kinds[b] != WORD:
        return False
    if later.starts[a + 1] - later.starts[a] <= earlier.starts[b + 1] - earlier.starts[b]:
        return _is_spelling(later, a, earlier, b)
    return _is_spelling(earlier, b, later, a)


@kernel(callee=True)
def _is_spelling(short: Tokens, a: int, long: Tokens, b: int) -> bool:
    first, second = short.starts[a], long.starts[b]
    n, m = short.starts[a + 1] - first, long.starts[b + 1] - second
    same = ZERO
    while same < n and short.chars[first + same] == long.chars[second + same]:
        same += 1
    if same == m:
        return True
    if n < 4 or m - n > 1 or (m == n and n < 5):
        return False
    rest = same + (m == n)
    if m == n and rest < n and short.chars[first + same] == long.chars[second + rest]:
        rest += short.chars[first + rest] == long.chars[second + same]
    for k in range(rest, n):  # noqa: SIM110
        if short.chars[first + k] != long.chars[second + k + (m - n)]:
            return False
    return True
